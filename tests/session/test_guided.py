"""CodeActAgent with a model that is guided: one without native tool calls, whose window is small."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from handiwork.agents.codeact.check import check_of
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.llm.types import Capabilities
from tests.session.bench import Bench, call, calls

pytestmark = pytest.mark.slow

SMALL = Capabilities(tools=False, window=16_384)
MAKEFILE = "test:\n\tgrep -q 4 answer\n"


def act(action: str, **arguments: Any) -> str:
    return json.dumps({"thought": "", "action": action, **arguments})


def answer(word: str) -> str:
    return json.dumps({"answer": word})


async def test_it_sees_the_workspace_before_its_first_step(bench: Bench) -> None:
    (bench.workspace / "notes").mkdir()
    (bench.workspace / "notes/a.txt").write_text("milk\n")
    (bench.workspace / "large.txt").write_text("x" * 50_000)
    choices = [answer("question"), answer("answer"), answer("reading")]
    replies = [*choices, act("finish", message="milk"), answer("question")]
    session = await bench.session(replies, capabilities=SMALL)
    state = await session.run("What is in notes/a.txt?")
    assert state.outputs == {"message": "milk"}
    (overview,) = [event for event in bench.events if isinstance(event, WorkspaceOverviewObservation)]
    assert overview.paths == ("large.txt", "notes/a.txt")
    assert "large.txt (50000 bytes)" in overview.content
    assert "notes/a.txt (1 line, 5 bytes)" in overview.content
    assert "notes/a.txt:\n```\nmilk\n```" in overview.content
    assert "x" * 100 not in overview.content
    assert {"python3", "sh"} <= set(overview.programs)
    assert "milk" in str(bench.llm.requests[3])


async def test_its_look_at_the_workspace_counts_as_no_step(bench: Bench) -> None:
    """No model is asked for it: a benchmark's five steps are five for every model."""
    replies = [answer("new"), act("bash", command="echo 1"), act("bash", command="echo 2")]
    state = await (await bench.session(replies, capabilities=SMALL, iterations=2)).run("Make the files 1 and 2.")
    assert state.change is not None
    assert (state.change.reason, state.iteration) == ("limit", 2)
    assert [event.content for event in bench.events if isinstance(event, CmdOutputObservation)] == ["1\n", "2\n"]


async def test_it_sees_a_workspace_that_a_repository_around_it_ignores(bench: Bench) -> None:
    subprocess.run(["git", "init", "-q"], cwd=bench.workspace.parent, check=True)
    (bench.workspace.parent / ".gitignore").write_text(f"{bench.workspace.name}/\n")
    (bench.workspace / "a b.txt").write_text("milk\n")
    session = await bench.session([answer("new"), act("finish", message="x"), answer("new")], capabilities=SMALL)
    await session.run("Make a file.")
    (overview,) = [event for event in bench.events if isinstance(event, WorkspaceOverviewObservation)]
    assert overview.paths == ("a b.txt",)


async def test_a_large_model_with_tool_calls_looks_itself(bench: Bench) -> None:
    await (await bench.session(["What do you mean?"])).run("Hm.")
    assert not [event for event in bench.events if isinstance(event, WorkspaceOverviewAction)]


async def test_the_check_runs_before_the_end_and_its_failure_is_seen(bench: Bench) -> None:
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    replies = [
        answer("change"),
        act("write", path="answer", content="5\n"),
        act("finish", message="It is 5."),
        act("write", path="answer", content="4\n"),
        act("finish", message="It is 4."),
    ]
    session = await bench.session(replies, capabilities=SMALL)
    state = await session.run("Write the answer, 2 + 2, into the file answer.")
    assert state.outputs == {"message": "It is 4."}
    checks = [event for event in bench.events if isinstance(event, CmdRunAction)]
    assert [check.command for check in checks] == ["make test", "make test"]
    assert "[exit code 2]" in str(bench.llm.requests[3][-1])


async def test_the_check_runs_in_the_workspace_wherever_the_shell_is(bench: Bench) -> None:
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    (bench.workspace / "docs").mkdir()
    both = [act("write", path="answer", content="4\n"), act("bash", command="cd docs")]
    session = await bench.session([answer("change"), *both, act("finish", message="It is 4.")], capabilities=SMALL)
    state = await session.run("Write the answer into the file answer.")
    assert state.outputs == {"message": "It is 4."}
    assert [event.exit_code for event in bench.events if isinstance(event, CmdOutputObservation)] == [0, 0]


async def test_an_end_without_a_change_since_the_check_failed_is_questioned_once(bench: Bench) -> None:
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    end = act("finish", message="It is 5.")
    replies = [answer("change"), act("write", path="answer", content="5\n"), end, end, end]
    state = await (await bench.session(replies, capabilities=SMALL)).run("Write the answer into the file answer.")
    assert state.outputs == {"message": "It is 5."}
    (challenge,) = [e for e in bench.events if isinstance(e, MessageAction) and e.source == "environment"]
    assert "`make test` still fails" in challenge.content


ASKED, FAILS = "Run `make test` and tell me what fails.", {"message": "The answer is missing."}


@pytest.mark.parametrize(
    ("capabilities", "replies"),
    [
        (
            SMALL,
            [*map(answer, ("question", "answer", "running")), act("bash", command="make test"), act("finish", **FAILS)],
        ),
        (Capabilities(), [call("bash", command="make test"), call("finish", **FAILS), answer("skip")]),
    ],
)
async def test_a_check_that_fails_may_be_the_answer(
    bench: Bench, capabilities: Capabilities, replies: list[Any]
) -> None:
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    state = await (await bench.session(replies, capabilities=capabilities)).run(ASKED)
    assert state.outputs == FAILS
    assert not [event for event in bench.events if isinstance(event, MessageAction) and event.source == "environment"]


async def test_the_end_that_the_model_chose_follows_a_check_that_succeeds(bench: Bench) -> None:
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    replies = [answer("change"), act("write", path="answer", content="4\n"), act("finish", message="It is 4.")]
    state = await (await bench.session(replies, capabilities=SMALL)).run("Write the answer into the file answer.")
    assert state.agent_state == "finished"
    assert state.outputs == {"message": "It is 4."}
    assert [type(action) for action, _ in state.history[-2:]] == [CmdRunAction, AgentFinishAction]


async def test_nothing_changed_is_told_once_if_the_task_asks_for_a_change(bench: Bench) -> None:
    replies = [
        answer("new"),
        act("finish", message="I made it."),
        act("finish", message="There is nothing to make."),
    ]
    state = await (await bench.session(replies, capabilities=SMALL)).run("Make a file.")
    assert state.outputs == {"message": "There is nothing to make."}
    (challenge,) = [e for e in bench.events if isinstance(e, MessageAction) and e.source == "environment"]
    assert "nothing has been changed" in challenge.content


async def test_a_repeated_reply_is_asked_for_again(bench: Bench) -> None:
    replies = [
        answer("new"),
        act("bash", command="ls"),
        act("bash", command="ls"),
        act("bash", command="ls"),
        act("bash", command="echo new > file"),
        act("finish", message="done"),
    ]
    await (await bench.session(replies, capabilities=SMALL)).run("Make a file.")
    commands = [event.command for event in bench.events if isinstance(event, CmdRunAction)]
    assert commands == ["ls", "echo new > file"]


async def test_the_model_may_hand_a_repair_over(bench: Bench) -> None:
    (bench.workspace / "Makefile").write_text("test:\n\ttrue\n")
    replies = [answer("repair"), act("finish", message="It passes."), answer("change")]
    state = await (await bench.session(replies, capabilities=SMALL)).run("The tests fail. Repair the code.")
    (delegation,) = [event for event in bench.events if isinstance(event, AgentDelegateAction)]
    assert delegation.agent == "RepairAgent"
    assert delegation.inputs["check"] == "make test"
    assert state.outputs == {"message": "It passes."}
    assert "If the task asks for nothing more, `finish` now." in str(bench.llm.requests[1])


async def test_a_command_that_does_not_say_that_it_checks_is_not_run(bench: Bench) -> None:
    replies = [act("write", path="solve.py", content="1\n"), act("finish", message="made")]
    task = "Make solve.py, which is used as `python3 solve.py FILE`."
    await (await bench.session(replies, capabilities=SMALL)).run(task)
    assert not [event for event in bench.events if isinstance(event, CmdRunAction)]


async def test_a_reply_that_only_reads_before_its_end_runs_no_check(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("milk\n")
    both = calls(("read", {"path": "a.txt"}), ("finish", {"message": "It says milk."}))
    state = await (await bench.session([both])).run("What does a.txt say? The tests are run with `make test`.")
    assert state.outputs == {"message": "It says milk."}
    assert not [event for event in bench.events if isinstance(event, CmdRunAction)]


async def test_an_end_after_a_command_that_failed_is_questioned_once(bench: Bench) -> None:
    end = act("finish", message="It counts.")
    run = act("bash", command="echo counting; exit 3")
    session = await bench.session([answer("new"), run, end, end], capabilities=SMALL)
    state = await session.run("Run the counter.")
    assert state.outputs == {"message": "It counts."}
    (challenge,) = [e for e in bench.events if isinstance(e, MessageAction) and e.source == "environment"]
    assert "The last command failed:\ncounting" in challenge.content


@pytest.mark.parametrize(
    ("command", "task"),
    [
        ("echo one failed; exit 1", "Which tests fail?"),
        ("grep -rn foo .", "Rename foo to bar everywhere."),
        ("diff a.txt b.txt", "What is the difference between a.txt and b.txt?"),
    ],
)
async def test_a_command_that_failed_may_be_the_answer(bench: Bench, command: str, task: str) -> None:
    for name in ("a", "b"):
        (bench.workspace / f"{name}.txt").write_text(f"{name}\n")
    run, end = act("bash", command=command), act("finish", message="This.")
    replies = [run, end, *[answer("question"), end] * 2]
    state = await (await bench.session(replies, capabilities=SMALL)).run(task)
    assert state.outputs == {"message": "This."}
    told = [e.content for e in bench.events if isinstance(e, MessageAction) and e.source == "environment"]
    assert not any("The last command failed" in text for text in told)


async def test_an_end_after_a_write_with_an_undefined_name_is_questioned_once(bench: Bench) -> None:
    end = act("finish", message="It is written.")
    wrong, right = (act("write", path="a.py", content=text) for text in ("print(os.name)\n", "import os\n"))
    session = await bench.session([answer("new"), wrong, end, right, end], capabilities=SMALL)
    state = await session.run("Write a.py.")
    assert state.outputs == {"message": "It is written."}
    (challenge,) = [e for e in bench.events if isinstance(e, MessageAction) and e.source == "environment"]
    assert challenge.content.startswith("Errors of a.py: line 1: undefined name 'os'\n")


async def test_a_long_message_that_may_be_a_question_is_not_pushed_to_a_change(bench: Bench) -> None:
    end = act("finish", message="worker.py")
    session = await bench.session([answer("change"), answer("change"), end, end], capabilities=SMALL)
    log = "10:00 ERROR no space left on device\n" * 20
    state = await session.run(f"Which module wrote this?\n\n{log}")
    assert state.outputs == {"message": "worker.py"}
    (challenge,) = [e for e in bench.events if isinstance(e, MessageAction) and e.source == "environment"]
    assert "if it asks a question, finish with the answer" in challenge.content


async def test_an_answer_to_a_long_question_without_files_ends_the_task(bench: Bench) -> None:
    choices = [answer(word) for word in ("question", "answer", "knowing")]
    session = await bench.session([*choices, act("finish", message="The disk was full.")], capabilities=SMALL)
    state = await session.run("What does this mean?\n\n" + "10:00 ERROR no space left on device\n" * 20)
    assert state.outputs == {"message": "The disk was full."}
    assert not [event for event in bench.events if isinstance(event, MessageAction) and event.source == "environment"]


async def test_a_finish_beside_an_edit_that_fails_does_not_follow_the_check_that_succeeds(bench: Bench) -> None:
    (bench.workspace / "Makefile").write_text("test:\n\ttrue\n")
    (bench.workspace / "words.txt").write_text("word\n" * 2_000)
    edit = "```edit words.txt\n<<<<<<< SEARCH\nwrod\n=======\nword\n>>>>>>> REPLACE\n```"
    replies = ["change", f"{edit}\n```finish\nThe word is right.\n```", "```finish\nIt was right before.\n```"]
    text = Capabilities(tools=False, schema=False, window=16_384)
    state = await (await bench.session(replies, capabilities=text)).run("Correct words.txt; `make test` must pass.")
    assert state.outputs == {"message": "It was right before."}
    assert [event.command for event in bench.events if isinstance(event, CmdRunAction)] == ["make test"]


LOOKS = [answer("new"), act("finish", message="Nothing."), answer("question")]


async def test_empty_files_leave_the_overview_room_for_source_and_makefile(bench: Bench) -> None:
    for number in range(40):
        (bench.workspace / f"part{number}").mkdir()
        (bench.workspace / f"part{number}/__init__.py").touch()
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    (bench.workspace / "part0/two.py").write_text("TWO = 2\n")
    state = await (await bench.session(LOOKS, capabilities=SMALL)).run("Look around.")
    (overview,) = [event for event in bench.events if isinstance(event, WorkspaceOverviewObservation)]
    assert f"Makefile:\n```\n{MAKEFILE}```" in overview.content
    assert "part0/two.py:\n```\nTWO = 2\n```" in overview.content
    assert len(overview.shown) == overview.files == 42
    assert check_of(state) == "make test"


async def test_the_check_of_a_large_project_is_found_behind_the_files_that_are_named(bench: Bench) -> None:
    for number in range(250):
        (bench.workspace / f"{number:03}.txt").write_text("1\n")
    (bench.workspace / "Makefile").write_text(MAKEFILE)
    state = await (await bench.session(LOOKS, capabilities=SMALL)).run("Look around.")
    (overview,) = [event for event in bench.events if isinstance(event, WorkspaceOverviewObservation)]
    assert "Makefile (" not in overview.content
    assert check_of(state) == "make test"


async def test_the_answer_to_a_question_of_the_agent_is_judged_with_the_task_and_the_question(bench: Bench) -> None:
    (bench.workspace / "notes.txt").write_text("milk\n")
    replies = [answer("new"), act("ask", question="Into which file?")]
    replies += [answer("new"), act("write", path="fjords.txt", content="Oslo\n"), act("finish", message="done")]
    replies += [answer("question"), answer("answer"), answer("reading"), act("finish", message="Oslo")]
    session = await bench.session([*replies, answer("question")], capabilities=SMALL)
    for message in ("List the fjords.", "fjords.txt", "Which one is it?"):
        state = await session.run(message)
    assert state.outputs == {"message": "Oslo"}
    asked = [str(request) for request in bench.llm.requests if "What kind of message is it" in str(request)]
    answered, followed = asked[1:3]
    assert "List the fjords.\\n\\nInto which file?\\n\\nfjords.txt" in answered
    assert "Which one is it?" in followed
    assert "fjords" not in followed
