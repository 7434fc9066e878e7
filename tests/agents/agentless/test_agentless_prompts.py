"""What AgentlessAgent asks the model, stage by stage, on states as a session would have logged them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from handiwork.agents.agentless import AgentlessAgent, AgentlessInputs
from handiwork.agents.agentless.pipeline import LONGEST_FILE, AgentlessProgress
from handiwork.agents.agentless.regression import MOST_TESTS
from handiwork.agents.agentless.retrieval import BM25
from handiwork.agents.agentless.trial import TrialAgent, TrialInputs
from handiwork.agents.repair.files import LIST, MOST_LISTED
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    AgentThinkAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    ForkAction,
)
from handiwork.events.base import Action, Event
from handiwork.events.observation import (
    ChildOutcome,
    CmdOutputObservation,
    ErrorObservation,
    FileReadObservation,
    ForkObservation,
)
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.silent_model import OftenSilent
from tests.agents.states import check_golden, edited, file_read, ran, reply, shown, state_of, task

AREA = "LIMIT = 3\n\n\ndef half(x):\n    return x / 2\n\n\ndef area(a, b):\n    return a + b\n"
TESTS = ["tests/test_area.py::test_half", "tests/test_area.py::test_sum"]
EDIT = "<<<<<<< SEARCH\n    return a + b\n=======\n    return a * b\n>>>>>>> REPLACE\n"
SCRIPT = "```python\nprint('Issue reproduced' if area(2, 3) == 5 else 'Issue resolved')\n```"


class FewInputs(AgentlessInputs):
    tests: str = "python3 -m pytest -q"
    context: int = 1
    location_samples: int = 1
    repair_samples: int = 2
    test_samples: int = 1


class FewAgentless(AgentlessAgent):
    """Two candidates and one reproduction test."""

    inputs = FewInputs


@dataclass
class Walk:
    """An agent's steps on a growing log; ``prompts`` are the questions so far."""

    events: list[Event]
    window: int | None = None
    prompts: list[str] = field(default_factory=list[str])
    temperatures: list[float | None] = field(default_factory=list[float | None])

    async def step(self, *replies: str) -> list[Action]:
        """Take a step, which uses all the replies, and log the thoughts that have them."""
        llm = OftenSilent(replies, capabilities=Capabilities(window=self.window))
        step = await FewAgentless(llm).step(state_of(*self.events))
        assert len(llm.requests) == len(replies)
        self.prompts += [shown(request) for request in llm.requests]
        actions = [step] if isinstance(step, Action) else list(step)
        if all(isinstance(action, AgentThinkAction) for action in actions):
            for text, action in zip(replies[-len(actions) :], actions, strict=True):
                self.events += [reply(text), action] if text else [action]
        return actions

    def tried(self, fork: Action, *outputs: dict[str, object]) -> None:
        """Log a fork whose trials ended with these outputs."""
        outcomes = [ChildOutcome.model_validate({"agent": "a", "outcome": "finished", "outputs": o}) for o in outputs]
        self.events += [fork, ForkObservation(outcomes=tuple(outcomes))]


async def walk_to_the_candidates(
    window: int | None = None, passed: Sequence[str] = TESTS, seconds: float | None = 9.0
) -> Walk:
    walk = Walk([task("area(2, 3) is 5, but it should be 6."), *ran(LIST, LISTED, 0)], window)
    (fork,) = await walk.step()
    assert isinstance(fork, ForkAction)
    walk.tried(fork, {"passed": passed, "seconds": seconds})
    files, folders = await walk.step("lib/area.py", "docs/")
    assert (files.thought, folders.thought) == ("Suspicious files: lib/area.py", "Irrelevant folders: docs")
    (retrieval,) = await walk.step()
    assert isinstance(retrieval, CmdRunAction)
    assert BM25 in retrieval.command
    assert "^docs/" in retrieval.command
    walk.events += ran(retrieval.command, "2.5 lib/area.py\n1.0 lib/text.py\n", 0)
    reads = await walk.step()
    assert [read.path for read in reads if isinstance(read, FileReadAction)] == ["lib/area.py", "lib/text.py"]
    walk.events += [*file_read("lib/area.py", AREA), *file_read("lib/text.py", "def shout(text):\n    return text\n")]
    (related,) = await walk.step("lib/area.py\nfunction: area\nvariable: LIMIT")
    assert related.thought == "Related elements: lib/area.py 1-2, 7-10"
    (locations,) = await walk.step("lib/area.py\nline: 9")
    assert locations.thought == "Edit locations 1: lib/area.py 8-10"
    return walk


LISTED = "docs/conf.py\nlib/area.py\nlib/text.py\ntests/test_area.py\n"


async def test_the_questions_of_all_stages() -> None:
    walk = await walk_to_the_candidates()
    first, second = await walk.step(f"lib/area.py\n{EDIT}", "I do not know.")
    assert (first.thought, second.thought) == ("Candidate 1.1: changes lib/area.py", "Candidate 1.2: nothing of use")
    (excluded,) = await walk.step(TESTS[1])
    assert excluded.thought == f"Tests that may change: {TESTS[1]}"
    (script,) = await walk.step(SCRIPT)
    assert "Issue reproduced" in script.thought
    (fork,) = await walk.step()
    walk.tried(fork, {"phrases": ["Issue reproduced"]})
    (fork,) = await walk.step()
    assert isinstance(fork, ForkAction)
    ((_, inputs),) = fork.children
    assert (inputs["task"], inputs["tests"]) == ("Candidate 1.1", TESTS[:1])
    assert "Issue resolved" in str(inputs["script"])
    check_golden("agentless", "\n".join(walk.prompts))


async def test_a_small_window_shows_less() -> None:
    large, small = await walk_to_the_candidates(), await walk_to_the_candidates(40)
    assert all(len(one) <= len(other) for one, other in zip(small.prompts, large.prompts, strict=True))
    assert "lib/text.py" in large.prompts[2]
    assert "lib/text.py" not in small.prompts[2]


async def test_a_reply_without_a_place_that_is_there_is_asked_for_again() -> None:
    walk = await walk_to_the_candidates()
    del walk.events[-4:]
    (related,) = await walk.step("lib/area.py\nfunction: lost", "None.", "lib/area.py\nfunction: area")
    assert related.thought == "Related elements: lib/area.py 7-10"


async def test_without_any_place_all_that_was_found_is_shown() -> None:
    walk = await walk_to_the_candidates()
    del walk.events[-4:]
    (related,) = await walk.step("?", "?", "?")
    assert related.thought == "Related elements: nothing of use"
    await walk.step("lib/area.py\nfunction: area")
    assert "1|LIMIT = 3" in walk.prompts[-1]
    assert "1|def shout(text):" in walk.prompts[-1]


async def test_a_retrieval_that_was_interrupted_is_made_again() -> None:
    walk = await walk_to_the_candidates()
    retrieval = next(event for event in walk.events if isinstance(event, CmdRunAction) and BM25 in event.command)
    cut = CmdOutputObservation(command=retrieval.command, exit_code=130, status="interrupted")
    walk.events[walk.events.index(retrieval) + 1 :] = [cut]
    (again,) = await walk.step()
    assert isinstance(again, CmdRunAction)
    assert again.command == retrieval.command


async def test_an_empty_answer_of_the_model_is_a_sample_without_edits() -> None:
    walk = await walk_to_the_candidates()
    silent, right = await walk.step("", f"lib/area.py\n{EDIT}")
    assert (silent.thought, right.thought) == ("Candidate 1.1: nothing of use", "Candidate 1.2: changes lib/area.py")
    (excluded,) = await walk.step("")
    assert excluded.thought == "Tests that may change: nothing of use"
    (script,) = await walk.step(SCRIPT)
    assert "Issue reproduced" in script.thought


async def report_of(walk: Walk) -> str:
    """Make the winner's edits, and return the agent's message."""
    for action in await walk.step():
        assert isinstance(action, FileEditAction)
        walk.events += edited(action.path, action.old, action.new)
    (end,) = await walk.step()
    assert isinstance(end, AgentFinishAction)
    return str(end.outputs["message"])


async def test_the_report_names_the_tests_that_were_too_many_to_compare() -> None:
    walk = await walk_to_the_candidates(passed=[f"tests/test_area.py::test_{n}" for n in range(MOST_TESTS + 2)])
    await walk.step(f"lib/area.py\n{EDIT}", "I do not know.")
    await walk.step("None.")
    await walk.step(SCRIPT)
    (fork,) = await walk.step()
    walk.tried(fork, {"phrases": ["Issue reproduced"]})
    (fork,) = await walk.step()
    walk.tried(fork, {"failed": [], "phrases": ["Issue resolved"]})
    message = await report_of(walk)
    assert f"{MOST_TESTS} tests that passed before (`python3 -m pytest -q`) still pass." in message
    assert "Unverified: 2 further tests that passed before: too many to compare." in message


async def test_the_report_names_a_candidate_that_resolves_the_issue_and_breaks_more_tests() -> None:
    walk = await walk_to_the_candidates()
    await walk.step(f"lib/area.py\n{EDIT}", f"lib/area.py\n{EDIT.replace('a * b', 'b * a')}")
    await walk.step("None.")
    await walk.step(SCRIPT)
    (fork,) = await walk.step()
    walk.tried(fork, {"phrases": ["Issue reproduced"]})
    (fork,) = await walk.step()
    walk.tried(
        fork,
        {"failed": [], "phrases": ["Issue reproduced"]},
        {"failed": TESTS[:1], "phrases": ["Issue resolved"]},
    )
    message = await report_of(walk)
    assert "Changed lib/area.py: Candidate 1.1" in message
    assert "Unverified: nothing shows that the candidate resolves the issue by Reproduction test 1" in message
    assert "Candidate 1.2 resolves it, but more tests fail with that." in message


@pytest.mark.parametrize("seconds", [9.0, None])
async def test_the_report_says_that_the_tests_without_a_change_did_not_end(seconds: float | None) -> None:
    walk = await walk_to_the_candidates(passed=[], seconds=seconds)
    await walk.step(f"lib/area.py\n{EDIT}", "I do not know.")
    await walk.step("I write no test.")
    for action in await walk.step():
        assert isinstance(action, FileEditAction)
        walk.events += edited(action.path, action.old, action.new)
    (end,) = await walk.step()
    assert isinstance(end, AgentFinishAction)
    assert ("`python3 -m pytest -q` did not end in 600 s" in str(end.outputs["message"])) is (seconds is None)


async def test_the_report_names_suspicious_files_that_could_not_be_read() -> None:
    walk = await walk_to_the_candidates()
    lines = LONGEST_FILE + 1
    long = FileReadObservation(path="lib/text.py", content="", blob="b", start=1, end=lines, lines=lines)
    walk.events = [long if isinstance(e, FileReadObservation) and e.path == long.path else e for e in walk.events]
    await walk.step("I do not know.", "I do not know.")
    (end,) = await walk.step()
    assert isinstance(end, AgentRejectAction)
    first, unread = str(end.outputs["reason"]).splitlines()
    assert "Looked at lib/area.py. All files are as they were." in first
    assert unread.startswith("Unverified: lib/text.py may be to blame, too, and could not be read")


async def test_the_report_says_that_more_programs_than_are_looked_at_may_be_there() -> None:
    walk = await walk_to_the_candidates()
    others = [f"shop/a_{number}.py" for number in range(MOST_LISTED - len(LISTED.split()))]
    walk.events[1:3] = ran(LIST, "\n".join([*LISTED.split(), *others]), 0)
    await walk.step("I do not know.", "I do not know.")
    (end,) = await walk.step()
    assert isinstance(end, AgentRejectAction)
    assert "Only the first 5,000 files of the workspace were looked at." in str(end.outputs["reason"])


async def test_the_largest_modules_of_libraries_are_read_and_fill_no_huge_window() -> None:
    progress = AgentlessProgress(task="The axes are wrong.")
    long = FileReadObservation(path="axes.py", content="", blob="b", start=1, end=9_000, lines=9_000)
    progress.apply(FileReadAction(path="axes.py"), long, "")
    assert len(progress.reads(["axes.py"])) == 90
    paths = "".join(f"lib/{'long_name_' * 20}{number}.py\n" for number in range(2_000))
    walk = Walk([task("The axes are wrong."), *ran(LIST, f"{LISTED}{paths}", 0)], window=1_000_000)
    (fork,) = await walk.step()
    walk.tried(fork, {"passed": []})
    await walk.step("lib/area.py", "none")
    assert 100_000 < len(walk.prompts[0]) < 200_000


async def test_nothing_stays_of_a_candidate_with_a_file_that_cannot_be_edited() -> None:
    walk = await walk_to_the_candidates(passed=[])
    del walk.events[-2:]
    await walk.step("lib/area.py\nline: 9\nlib/text.py\nline: 2")
    louder = EDIT.replace("return a + b", "return text").replace("return a * b", "return text.upper()")
    await walk.step(f"lib/area.py\n{EDIT}lib/text.py\n{louder}", "I do not know.")
    await walk.step("I write no test.")
    made, refused = await walk.step()
    assert isinstance(made, FileEditAction)
    assert isinstance(refused, FileEditAction)
    denied = ErrorObservation(content="lib/text.py: it is read-only", error_id="denied")
    walk.events += [*edited(made.path, made.old, made.new), refused, denied]
    await walk.step()
    walk.events += file_read("lib/text.py", "def shout(text):\n    return text\n")
    (undo,) = await walk.step()
    assert isinstance(undo, FileEditAction)
    assert (undo.path, undo.old, undo.new) == (made.path, made.new, made.old)
    walk.events += edited(undo.path, undo.old, undo.new)
    (end,) = await walk.step()
    assert isinstance(end, AgentRejectAction)
    assert "lib/text.py cannot be edited" in str(end.outputs["reason"])


def trial_step(*events: Event) -> Action:
    """The only action of a trial's step after these events."""
    state = state_of(task("Candidate 1.1"), *events)
    inputs = TrialInputs(task="Candidate 1.1", check="python3 -m pytest -q", tests=tuple(TESTS))
    state.inputs = inputs.model_dump(mode="json")
    step = TrialAgent(ScriptedLLM([])).step(state)
    (action,) = [step] if isinstance(step, Action) else step
    return action


def test_a_trial_repeats_tests_that_the_user_has_interrupted() -> None:
    run = trial_step()
    assert isinstance(run, CmdRunAction)
    cut = CmdOutputObservation(command=run.command, exit_code=130, status="interrupted", content="..")
    again = trial_step(run, cut)
    assert isinstance(again, CmdRunAction)
    assert again.command == run.command
    end = trial_step(run, cut, *ran(run.command, "".join(f"PASSED {test}\n" for test in TESTS), 0))
    assert isinstance(end, AgentFinishAction)
    assert end.outputs["message"] == "2 of 2 tests pass"
