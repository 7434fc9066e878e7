"""What a model reads of an observation."""

from __future__ import annotations

import pytest

from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.history import condense
from handiwork.agents.rendering import observation_text
from handiwork.events.action import (
    CmdRunAction,
    ForkAction,
    JobAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    ChildOutcome,
    CmdOutputObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    ForkObservation,
    JobObservation,
    OutputReadObservation,
    UserRejectObservation,
)
from handiwork.events.record import CondensationEvent
from handiwork.llm.types import Completion, ToolCall
from tests.agents.states import native_actions


@pytest.mark.parametrize(
    ("observation", "text"),
    [
        (
            CmdOutputObservation(command="make", content="up\n", exit_code=None, status="background", job="job1"),
            "up\n[job1 runs in the background]",
        ),
        (
            JobObservation(operation="read", job="job1", status="running"),
            "(no output)\n[job1 is running]",
        ),
        (
            JobObservation(operation="read", job="job1", content="no\n", status="done", exit_code=2),
            "no\n[job1 is done, exit code 2]",
        ),
        (JobObservation(operation="list", content="job1 running, 3 s: make\n"), "job1 running, 3 s: make\n"),
        (
            OutputReadObservation(output="1a2b3c4d", content="b\nc\n", start=2, end=3, lines=9),
            "b\nc\n[lines 2 to 3 of 9]",
        ),
        (
            OutputReadObservation(output="1a2b3c4d", start=1, end=9, lines=9),
            "(no line matches)\n[lines 1 to 9 of 9]",
        ),
    ],
)
def test_jobs_and_pages_say_how_they_stand(observation: Observation, text: str) -> None:
    assert observation_text(observation) == text


@pytest.mark.parametrize(
    ("observation", "text"),
    [
        (FileWriteObservation(path="a.py", created=True), "a.py is created."),
        (
            FileWriteObservation(path="a.py", syntax_error="line 3: '(' was never closed"),
            "a.py is written.\nSyntax error in line 3: '(' was never closed",
        ),
        (FileEditObservation(path="a.py", content="-1\n+2\n"), "-1\n+2\n"),
        (FileEditObservation(path="a.py"), "Done."),
        (
            FileEditObservation(path="a.py", content="-1\n+(\n", syntax_error="it cannot be compiled"),
            "-1\n+(\nSyntax error: it cannot be compiled",
        ),
        (
            FileWriteObservation(path="a.py", undefined_names=("line 3: undefined name 'os'",)),
            "a.py is written.\nError: line 3: undefined name 'os'",
        ),
    ],
)
def test_an_error_in_the_file_is_the_last_line(observation: Observation, text: str) -> None:
    assert observation_text(observation) == text


def test_of_a_progress_bar_only_the_last_state_is_seen() -> None:
    bar = "".join(f"\r{percent:3}% of 5 MB" for percent in range(101))
    printed = CmdOutputObservation(command="make", content=f"begin\r\n{bar}\nend\n", exit_code=0)
    assert observation_text(printed) == (
        "begin\r\n[... 101 texts before a carriage return left out ...]100% of 5 MB\nend\n[exit code 0]"
    )
    running = CmdOutputObservation(command="make", content="1%\r2%\r3%\r4%\r5%\r", exit_code=None, status="running")
    assert observation_text(running).startswith("[... 4 texts before a carriage return left out ...]5%\n")
    few = CmdOutputObservation(command="make", content="a\rb\rc\r\n", exit_code=0)
    assert observation_text(few) == "a\rb\rc\n[exit code 0]"


def test_a_refusal_does_not_look_like_the_output_of_the_command() -> None:
    assert observation_text(UserRejectObservation(content="The user did not allow it.")) == (
        "The user did not allow it."
    )
    assert observation_text(UserRejectObservation(content="make test instead")) == (
        "Not done: the user refused it, and says: make test instead"
    )


def test_the_changes_of_a_forks_children_are_seen_until_the_history_is_condensed() -> None:
    diffs = ("+one\n", "", f"+{'x' * 900}\n")
    outcomes = tuple(ChildOutcome(agent="CodeActAgent", outcome="finished", diff=diff) for diff in diffs)
    fork = ForkAction(children=(("CodeActAgent", {"task": "a"}),) * 3, id=2)
    observation = ForkObservation(content="1. done\n2. nothing\n3. done", outcomes=outcomes, id=3, cause=2)
    assert observation_text(observation).startswith(
        "1. done\n2. nothing\n3. done\n\nChanges of 1:\n+one\n\n\nChanges of 3:\n+xxx"
    )
    assert len(observation_text(observation, 200)) < 400
    ((_, shorter),) = condense([(fork, observation)], CondensationEvent(first=2, last=2, how="collapse"), frozenset())
    assert observation_text(shorter) == "1. done\n2. nothing\n3. done"


@pytest.mark.parametrize("limit", [16_000, 100])
def test_a_large_output_says_how_the_rest_is_read_however_much_is_shown(limit: int) -> None:
    sizes = {"content": "a" * 8192, "tail": "z" * 8192, "size": 20_000, "blob": "1a2b3c4d5e6f" + "0" * 52}
    observation = CmdOutputObservation(command="make", exit_code=0, **sizes)
    shown = min(limit // 2, 8192)
    gap = (
        f"[... {20_000 - 2 * shown} bytes left out; the whole is output 1a2b3c4d5e6f: read_output shows its lines ...]"
    )
    expected = f"{'a' * shown}\n{gap}\n{'z' * shown}\n[exit code 0]"
    assert observation_text(observation, limit, pages=True) == expected
    assert "read_output" not in observation_text(observation, limit), "it is no tool of this agent"


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("bash", '{"command": "make", "background": true}', CmdRunAction(command="make", background=True)),
        ("jobs", '{"operation": "list"}', JobAction(operation="list")),
        ("jobs", '{"operation": "stop", "job": "job1"}', JobAction(operation="stop", job="job1")),
        (
            "read_output",
            '{"output": "1a2b3c4d5e6f", "start": 5, "pattern": "FAILED"}',
            OutputReadAction(output="1a2b3c4d5e6f", start=5, pattern="FAILED"),
        ),
    ],
)
def test_the_tools_ask_for_them(name: str, arguments: str, action: Action) -> None:
    (made,) = native_actions(Completion("", (ToolCall("c1", name, arguments),)))
    assert made == action.with_fields(tool_call_id="c1", timestamp=made.timestamp)


def test_the_tools_say_that_paths_start_from_the_directory_of_the_shell() -> None:
    arguments = [tool.tool.parameters["properties"] for tool in TOOLS]
    paths = [own["path"]["description"] for own in arguments if "path" in own]
    assert paths == ["The file, absolute or from the shell's directory."] * 3


def test_the_lines_of_a_file_that_are_left_out_are_named() -> None:
    lines = [f"line {number}" for number in range(1, 201)]
    text = "\n".join(lines) + "\n"
    whole = FileReadObservation(path="a.py", content=text, start=1, end=200, lines=200)
    head, note, tail = observation_text(whole, 400, pages=True).partition(
        "[... lines 27 to 178 of 200 left out: `read` them with start=27 end=178 ...]"
    )
    assert note
    assert head.splitlines() == lines[:26]
    assert tail.strip().splitlines() == lines[178:]
    cut = FileReadObservation(
        path="a.py", content=text[:300], tail=text[-300:], blob="0" * 64, size=len(text), start=1, end=200, lines=200
    )
    assert "[... lines 27 to 178 of 200 left out" in observation_text(cut, 400, pages=True)
    one = FileReadObservation(path="a.js", content="x" * 900, start=1, end=1, lines=1)
    assert "500 characters left out" in observation_text(one, 400, pages=True)


@pytest.mark.parametrize("inside", ["", "\f", "10 %\r20 %\r", "\u2028"])
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_only_a_line_feed_ends_a_line_that_is_left_out(inside: str, between: str) -> None:
    text = between.join(f"{inside}word {number}" for number in range(200)) + "\n"
    lines = text.count("\n")
    read = FileReadObservation(path="a.c", content=text, start=1, end=lines, lines=lines)
    head, _, rest = observation_text(read, 400, pages=True).partition("\n[... lines ")
    numbers, _, tail = rest.partition(" of ")
    start, end = map(int, numbers.split(" to "))
    assert head == "\n".join(text.split("\n")[: start - 1])
    assert tail.partition(" ...]\n")[2] == "\n".join(text.split("\n")[end:])
