"""AgentlessAgent in real sandboxes: a scripted model, real tests in forks, and the files as they are in the end."""

from __future__ import annotations

import asyncio
import shutil
from itertools import pairwise

import pytest

from handiwork.agents import agentless
from handiwork.agents.agentless import AgentlessAgent
from handiwork.agents.agentless.pipeline import AgentlessInputs
from handiwork.agents.state import State
from handiwork.cli.terminal.transcript import Transcript
from handiwork.events.action import AgentThinkAction, ForkAction, OutputReadAction
from handiwork.events.base import Action
from handiwork.events.observation import ForkObservation
from handiwork.events.record import CompletionEvent, Limits, StepStarted
from handiwork.llm.scripted.model import ScriptedLLM
from tests.llm.standin import Refusal, StandIn, serving
from tests.session.workshop import Workshop, unittest_of

PYTHON = "python3 -m unittest discover -s tests -t ."
ISSUE = f"area(2, 3) returns 5. It should return 6, the area of a rectangle. (`{PYTHON}` runs the tests.)"
AREA = "def half(x):\n    return x / 2\n\n\ndef area(a, b):\n    return a + b\n"
FILES = {
    "lib/__init__.py": "",
    "lib/area.py": AREA,
    "lib/text.py": "def shout(text):\n    return text.upper()\n",
    "docs/conf.py": "area = 'the area of a rectangle, area by area'\n",
    "tests/__init__.py": "",
    "tests/test_lib.py": unittest_of(
        "from lib.area import area, half\nfrom lib.text import shout",
        half="assertEqual(half(4), 2)",
        shout='assertEqual(shout("a"), "A")',
        square="assertEqual(area(2, 2), 4)",
        sum="assertEqual(area(2, 3), 5)",
    ),
}
LOCALISED = ["lib/area.py", "docs/", "lib/area.py\nfunction: area", "lib/area.py\nline: 6", "Nowhere in particular."]
EXCLUDED = "test_sum (tests.test_lib.Tests.test_sum)"


class ThreeInputs(AgentlessInputs):
    repair_samples: int = 3
    tries: int = 0


class TimedInputs(AgentlessInputs):
    """No model call stands between the candidates and their trials."""

    tests: str = PYTHON
    reproduction: bool = False
    retrieval: bool = False
    location_samples: int = 1
    repair_samples: int = 3
    tries: int = 0


class TimedAgentless(AgentlessAgent):
    inputs = TimedInputs


class NearestInputs(AgentlessInputs):
    embeddings: str = "openai:standin-1"
    regression: bool = False
    reproduction: bool = False
    location_samples: int = 1
    repair_samples: int = 1
    tries: int = 0


class NearestAgentless(AgentlessAgent):
    """One candidate, in the files that embeddings choose."""

    inputs = NearestInputs


class ThreeAgentless(AgentlessAgent):
    """Three candidates for each of two sets of locations."""

    inputs = ThreeInputs


def edit(old: str, new: str, path: str = "lib/area.py") -> str:
    """A reply with a search/replace edit."""
    return f"It adds.\n\n{path}\n```\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```"


def script(name: str, value: str = "area(2, 3)") -> str:
    """A reply with a reproduction test."""
    body = (
        f"def {name}():\n    value = {value}\n    if value == 5:\n        print('Issue reproduced')\n"
        "    elif value == 6:\n        print('Issue resolved')\n    else:\n        print('Other issues')\n"
    )
    return f"```python\n# {name}\nfrom lib.area import area\n\n\n{body}\n\n{name}()\n```"


RIGHT, WRONG = edit("    return a + b", "    return a * b"), edit("    return a + b", "    return 2 * a")
SAME, BREAKS = edit("    return a + b", "    # A.\n    return a * b"), edit("    return x / 2", "    return x")
CRASHES = edit("def half(x):", "import os\n\nos._exit(0)\n\n\ndef half(x):")
LOOPS = edit("def half(x):", "def half(x):\n    while True:\n        pass")
CANDIDATES = [WRONG, WRONG, RIGHT, CRASHES, BREAKS, SAME]
SCRIPTS = [script("check_one"), script("check", "6"), script("check_two"), script("check", "missing(2, 3)")]
REPLIES = [*LOCALISED, *CANDIDATES, EXCLUDED, *SCRIPTS]


@pytest.mark.slow
async def test_the_candidate_that_resolves_the_issue_and_breaks_no_test_wins_against_more_votes(
    workshop: Workshop,
) -> None:
    workshop.write(FILES)
    state = await workshop.repair(ISSUE, *REPLIES, agent=f"{__name__}:ThreeAgentless")
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/area.py": AREA.replace("a + b", "a * b")}
    message = str(state.outputs["message"])
    assert "Candidate 1.3, one of 6 candidates that change code (of 6 replies)" in message
    assert "2 of the 2 that the tests left are this patch" in message
    assert f"3 tests that passed before (`{PYTHON}`) still pass" in message
    assert "1 test left out" in message
    assert "resolved by Reproduction test 1, which reproduced the issue before (2 of 2 are the same)" in message
    base, verified, validated = (o for _, o in state.history if isinstance(o, ForkObservation))
    assert [len(fork.outcomes) for fork in (base, verified, validated)] == [1, 4, 5]
    names = [f"{name} (tests.test_lib.Tests.{name})" for name in ("test_half", "test_shout", "test_square")]
    # Candidate 2.1 ends the test run early with the exit code 0: without a report every test has failed.
    assert [child.outputs.get("failed") for child in validated.outcomes] == [[], names, names[:1], [], []]
    await _check_that_every_step_follows_from_the_log(workshop)
    transcript = Transcript()
    shown = "\n".join(str(line) for event in workshop.events for line in transcript.lines(event))
    assert "Suspicious files: lib/area.py" in shown
    assert "Candidate 2.3: changes lib/area.py" in shown
    assert "TrialAgent: finished, +20 -0 lines; 0 of 3 tests pass, no verdict of the reproduction test" in shown
    assert "TrialAgent: finished, +16 -1 lines; 3 of 3 tests pass, Issue resolved" in shown


async def _check_that_every_step_follows_from_the_log(workshop: Workshop) -> None:
    """Fold the log anew up to each step, as after a kill: a new agent with the same replies takes the same step."""
    assert workshop.session is not None
    events = await (await workshop.store.log(workshop.session.id)).read()
    own = [event for event in events if not event.subtask]
    starts = [event.id for event in own if isinstance(event, StepStarted)]
    for start, end in pairwise([*starts, len(events) + 1]):
        state = State()
        for event in events[: start - 1]:
            state.apply(event)
        within = [event for event in own if start < event.id < end]
        actions = [event for event in within if isinstance(event, Action) and event.source == "agent"]
        answers = {event.id: str(event.response["content"]) for event in within if isinstance(event, CompletionEvent)}
        replies = [answers[action.completion] for action in actions if action.completion is not None]
        step = await ThreeAgentless(ScriptedLLM(replies)).step(state)
        fields = set(Action.model_fields) - {"thought"}
        taken = [step] if isinstance(step, Action) else step
        assert [one.model_dump(exclude=fields) for one in taken] == [one.model_dump(exclude=fields) for one in actions]
    assert len(starts) > 10


@pytest.mark.slow
async def test_a_session_that_is_killed_while_it_validates_goes_on_there(workshop: Workshop) -> None:
    workshop.write(FILES)
    session = await workshop.open(*REPLIES, agent=f"{__name__}:ThreeAgentless")
    running = asyncio.create_task(session.run(ISSUE))
    await workshop.until(ForkAction, child=False, times=3)
    running.cancel()
    await asyncio.wait([running])
    await session.close()
    state = await workshop.resume()
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/area.py": AREA.replace("a + b", "a * b")}
    assert len({event.id for event in workshop.events if isinstance(event, CompletionEvent)}) == len(REPLIES)


TIMED = ["lib/area.py", "function: area", "function: area", LOOPS, RIGHT, SAME, EXCLUDED]


@pytest.mark.slow
async def test_a_candidate_that_loops_without_end_has_little_time(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agentless, "LEAST_SECONDS", 1.0)
    monkeypatch.setattr(agentless, "LONGER", 1.0)
    workshop.write(FILES)
    state = await workshop.repair(ISSUE, *TIMED, agent=f"{__name__}:TimedAgentless")
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/area.py": AREA.replace("a + b", "a * b")}
    looping = next(o for a, o in state.history if isinstance(a, ForkAction) and len(a.children) > 1)
    assert isinstance(looping, ForkObservation)
    assert len(looping.outcomes[0].outputs["failed"]) == 3


@pytest.mark.slow
async def test_the_trials_that_end_before_the_time_limit_decide(workshop: Workshop) -> None:
    workshop.write(FILES)
    state = await workshop.repair(ISSUE, *TIMED, agent=f"{__name__}:TimedAgentless", limits=Limits(time=30.0))
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/area.py": AREA.replace("a + b", "a * b")}
    assert "The limit of time came before the last stage" in str(state.outputs["message"])


async def test_at_a_limit_it_applies_the_best_candidate_so_far(workshop: Workshop) -> None:
    workshop.write(FILES)
    limits = Limits(iterations=9)
    state = await workshop.repair(ISSUE, *TIMED[:-1], agent=f"{__name__}:TimedAgentless", limits=limits)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/area.py": AREA.replace("a + b", "a * b")}
    assert "The limit of iterations came before the last stage" in str(state.outputs["message"])


async def test_texts_too_long_for_the_model_of_embeddings_are_cut(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shout = "def shout(text):\n    return text.lower()\n"
    workshop.write({"lib/text.py": shout, "lib/bell.py": "# shout " + "x " * 600})
    replies = ["I cannot tell.", "None.", "lib/text.py\nfunction: shout", "lib/text.py\nfunction: shout"]
    candidate = edit("    return text.lower()", "    return text.upper()", "lib/text.py")
    too_long = Refusal(400, {"error": {"message": "This model's maximum context length is 512 tokens."}})
    async with serving(StandIn()) as server:
        server.longest = 1_000, too_long
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        agent = f"{__name__}:NearestAgentless"
        state = await workshop.repair("A shout should be loud.", *replies, candidate, agent=agent)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/text.py": shout.replace("lower", "upper")}
    lengths = [max(map(len, body["input"])) for body in server.requests]
    assert lengths[0] > 1_000 >= lengths[-1]


async def test_embeddings_rank_the_files_that_the_words_found_and_their_tokens_count(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files name the word of the issue more often than the one that the model of embeddings puts next to it."""
    workshop.write(FILES | {f"lib/{name}.py": "# quiet " * 9 + "\n" for name in ("bell", "door", "lamp")})
    workshop.write({"lib/text.py": "def shout(text):  # not quiet\n    return text.lower()\n"})
    issue = "What should not be quiet is."
    replies = ["I cannot tell.", "None.", "lib/text.py\nfunction: shout", "lib/text.py\nfunction: shout"]
    candidate = edit("    return text.lower()", "    return text.upper()", "lib/text.py")
    async with serving(StandIn()) as server:
        server.vector = lambda text: [1.0, 0.1] if text == issue or "shout" in text else [0.1, 1.0]
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        state = await workshop.repair(issue, *replies, candidate, agent=f"{__name__}:NearestAgentless")
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib/text.py": "def shout(text):  # not quiet\n    return text.upper()\n"}
    (ranking,) = (
        action.thought
        for action, _ in state.history
        if isinstance(action, AgentThinkAction) and action.thought.startswith("Files by embeddings")
    )
    assert ranking.splitlines()[1] == "lib/text.py"
    assert len(ranking.splitlines()) == 5
    calls = [event for event in workshop.events if isinstance(event, CompletionEvent) and event.model == "standin-1"]
    assert [(call.usage.input, call.cost) for call in calls] == [(7, None)]
    assert state.totals.unpriced == 1


async def test_a_model_without_embeddings_pauses_the_session_with_the_reason(workshop: Workshop) -> None:
    workshop.write(FILES)
    replies = ["lib/area.py", "None."]
    state = await workshop.delegate(*replies, agent="AgentlessAgent", embeddings="scripted", regression=False)
    assert "gives no embeddings" in str(state.last_error or state.outputs)


async def test_without_a_candidate_it_says_so_and_changes_nothing(workshop: Workshop) -> None:
    workshop.write(FILES)
    inputs = {"regression": False, "reproduction": False, "location_samples": 1, "repair_samples": 2, "tries": 1}
    replies = ["lib/area.py", "", "I do not know.", "lib/area.py\nfunction: area", "lib/area.py\nline: 6"]
    wrong = [edit("    return a - b", "    return 0"), edit("    return a + b", "    return (")]
    state = await workshop.delegate(*replies, *wrong, agent="AgentlessAgent", **inputs)
    assert state.outputs["outcome"] == "rejected", state.outputs
    assert "None of the model's 2 replies has an edit that fits the code" in str(state.outputs["reason"])
    assert workshop.changed() == {}


async def test_without_a_test_the_vote_decides_and_the_message_says_what_is_unverified(workshop: Workshop) -> None:
    workshop.write({"lib/area.py": AREA})
    inputs = {"retrieval": False, "location_samples": 1, "repair_samples": 3, "test_samples": 1}
    replies = ["lib/area.py", "function: area", "function: area", WRONG, RIGHT, SAME, "I do not know."]
    state = await workshop.delegate(*replies, agent="Agentless", **inputs)
    assert state.outputs["outcome"] == "finished", state.outputs
    message = str(state.outputs["message"])
    assert "2 of the 3 that the tests left are this patch" in message
    assert "Unverified: no test command is known" in message
    assert "Unverified: none of the model's 0 reproduction tests reproduces the issue" in message
    assert workshop.changed() == {"lib/area.py": AREA.replace("a + b", "a * b")}


async def test_in_place_it_refuses_since_candidates_need_copies(workshop: Workshop) -> None:
    workshop.write(FILES)
    state = await workshop.repair(ISSUE, agent="AgentlessAgent", in_place=True)
    assert state.agent_state == "rejected", state.last_error
    assert "copy of the workspace" in str(state.outputs["reason"])
    assert not workshop.llm.requests


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_javascript_with_more_tests_than_one_observation_shows(workshop: Workshop) -> None:
    code = (
        "function half(x) {\n  return x / 2;\n}\n\nfunction area(a, b) {\n  return a + b;\n}\n\n"
        "module.exports = { area, half };\n"
    )
    name = "half of {n} in a test with a rather long name of no meaning"
    tests = "".join(f'test("{name}", () => equal(half({{n}}), {{n}} / 2));\n'.format(n=n) for n in range(150))
    head = 'const test = require("node:test");\nconst { equal } = require("assert");\n'
    workshop.write({"area.js": code, "area.test.js": f'{head}const {{ half }} = require("./area");\n{tests}'})
    inputs = {"tests": "node --test --test-reporter=tap", "location_samples": 1, "repair_samples": 2, "test_samples": 1}
    verdict = "area(2, 3) === 6 ? 'Issue resolved' : 'Issue reproduced'"
    replies = [
        *("area.js", "", "area.js\nfunction: area", "area.js\nfunction: area"),
        *(edit("  return x / 2;", "  return 7;", "area.js"), edit("  return a + b;", "  return a * b;", "area.js")),
        *("none", f"```js\nconst {{ area }} = require('./area');\nconsole.log({verdict});\n```"),
    ]
    state = await workshop.delegate(*replies, agent="AgentlessAgent", **inputs)
    assert state.outputs["outcome"] == "finished", state.outputs
    assert "150 tests that passed before" in str(state.outputs["message"])
    assert workshop.changed() == {"area.js": code.replace("a + b", "a * b")}
    assert any(isinstance(event, OutputReadAction) and event.subtask for event in workshop.events)
