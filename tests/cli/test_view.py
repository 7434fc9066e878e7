"""The view, line by line: events in, text out, on a console that writes to a string."""

from __future__ import annotations

import io
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from handiwork.agents.state import State
from handiwork.cli.commands.changes import overview
from handiwork.cli.terminal.jsonlines import JsonLines
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.summary import cost, duration, summary
from handiwork.cli.terminal.view import View, terminal_console
from handiwork.events.action import (
    AgentFinishAction,
    AgentThinkAction,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    JobAction,
    MessageAction,
    OutputReadAction,
)
from handiwork.events.base import Event, UnknownEvent
from handiwork.events.observation import (
    AgentStateChangedObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    JobObservation,
    OutputReadObservation,
)
from handiwork.events.record import CompletionEvent, CostSource, Limits, SessionStarted, StepStarted, Usage
from handiwork.session.steps.live import OutputDelta, Status, TextDelta
from handiwork.workspace.changes import Change, side_at

EVENTS: list[Event] = [
    SessionStarted(agent="CodeActAgent", model="openai:gpt", sandbox="bubblewrap"),
    MessageAction(content="make the test pass", source="user"),
    StepStarted(),
    CompletionEvent(model="openai:gpt", response={}, failed_attempts=("503 overloaded",)),
    CmdRunAction(command="pytest -q\necho $?", thought="I run the tests.\nAll of them."),
    CmdOutputObservation(command="", content="1 failed\n", exit_code=1),
    StepStarted(),
    FileReadAction(path="a.py", end=1),
    FileReadObservation(path="a.py", content="x = 1\n", start=1, end=1, lines=3),
    FileEditAction(path="a.py", old="1", new="2"),
    FileEditObservation(path="a.py", content="--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"),
    FileEditAction(path="b.py", old="1", new="2"),
    ErrorObservation(content="b.py does not exist", error_id="not_found"),
    FileWriteAction(path="c.py", content="new\nfile\n"),
    FileWriteObservation(path="c.py", created=True),
    FileWriteAction(path="c.py", content="new\n"),
    FileWriteObservation(path="c.py", lines=2, deleted=1),
    StepStarted(),
    IPythonRunCellAction(code="for i in x:\n    i"),
    IPythonRunCellObservation(code="", content="NameError: x\n", error="NameError"),
    CmdRunAction(command="python"),
    CmdOutputObservation(command="", content=">>> ", exit_code=None, status="input"),
    CmdRunAction(command="1+1", is_input=True),
    CmdRunAction(command=""),
    CmdRunAction(command="make serve", background=True),
    CmdOutputObservation(command="", content="up\n", exit_code=None, status="background", job="job1"),
    JobAction(operation="stop", job="job1"),
    JobObservation(operation="stop", job="job1", content="bye\n", status="stopped", exit_code=143),
    JobAction(operation="list"),
    JobObservation(operation="list", content="job1 stopped\n"),
    OutputReadAction(output="1a2b3c4d5e6f", start=9, pattern="E .*"),
    OutputReadObservation(output="1a2b3c4d5e6f", start=9, end=90, lines=90, content="10: E  no\n"),
    BrowseURLAction(url="http://localhost/"),
    BrowserOutputObservation(url="http://localhost/", title="Shop", content="[1] heading"),
    BrowseInteractiveAction(browser_actions="fill('3', 'a')\nclick('4')", thought="I send it."),
    BrowserOutputObservation(
        url="http://localhost/", last_action_error="4 is covered", dialog="alert: hello", downloads=("a.csv",)
    ),
    AgentThinkAction(thought="That will do."),
    UnknownEvent(unknown={"type": "DreamAction", "id": 7, "thought": "", "of": "sheep", "content": "one\ntwo"}),
    AgentFinishAction(outputs={"message": "It passes."}),
    AgentStateChangedObservation(agent_state="paused", reason="limit", content="the limit is reached"),
]

GOLDEN = """\
CodeActAgent · openai:gpt · bubblewrap · session 12ab

you: make the test pass

step 1  event 3
  retried after: 503 overloaded
  I run the tests.
  All of them.
  $ pytest -q
  > echo $?
  1 failed
  exit 1

step 2  event 7
  read a.py, line 1 to 1
  x = 1
  lines 1 to 1 of 3
  edit a.py
  @@ -1 +1 @@
  -x = 1
  +x = 2
  edit b.py
  b.py does not exist
  write c.py
  +new
  +file
  created
  write c.py
  +new
  written, 1 of 2 lines deleted

step 3  event 18
  >>> for i in x:
  ...     i
  NameError: x
  NameError
  $ python
  >>> \n\
  waiting for input
  < 1+1
  (waiting for more output)
  & make serve
  up
  running in the background as job1
  stop job1
  bye
  job1 is stopped, exit 143
  list jobs
  job1 stopped
  read output 1a2b3c4d5e6f, line 9 to the last, matching E .*
  10: E  no
  lines 9 to 90 of 90
  browse http://localhost/
  Shop http://localhost/
  I send it.
  browser: fill('3', 'a')
           click('4')
  http://localhost/
  4 is covered
  dialog: alert: hello
  downloaded a.csv
  That will do.
  DreamAction {"of": "sheep"}
  one
  two
  finish
  paused: the limit is reached
"""


def viewed(*items: Event | Status | TextDelta | OutputDelta, after: int = 0) -> str:
    file = io.StringIO()
    view = View(terminal_console(file), live=False)
    view.open("12ab", after)
    with view:
        for number, item in enumerate(items, 1):
            view(item.with_fields(id=number) if isinstance(item, Event) else item)
    return file.getvalue()


def test_a_session_reads_like_this() -> None:
    assert viewed(*EVENTS) == GOLDEN


def test_events_from_before_are_counted_but_not_shown() -> None:
    assert viewed(*EVENTS, after=17).startswith("\nstep 3  event ")


def test_the_header_is_not_repeated_when_the_session_goes_on() -> None:
    started = SessionStarted(agent="A", model="m", sandbox="bubblewrap")
    assert viewed(started, started) == "A · m · bubblewrap · session 12ab\n"
    assert viewed(started, started.with_fields(model="other")).count("session 12ab") == 2


def test_without_a_terminal_what_streams_is_not_printed_and_progress_once() -> None:
    progress = [Status(f"fetching the model, {n} %") for n in range(100)]
    text = viewed(TextDelta("I thi"), OutputDelta(1, "half"), *progress, Status("loading the model"))
    assert text == "(fetching the model, 0 %)\n(loading the model)\n"


def test_long_lines_are_cut() -> None:
    text = viewed(CmdOutputObservation(command="", content="x" * 10_000, exit_code=0))
    assert text == f"  {'x' * 1000} ... 9000 more characters\n"


def test_markup_in_what_is_shown_means_nothing() -> None:
    assert viewed(MessageAction(content="[red]not[/red] :smile:")) == "  agent: [red]not[/red] :smile:\n"


def live(*items: Event | TextDelta | OutputDelta | Status) -> str:
    """Return what is on the screen below the events at the end."""
    view = View(Console(file=io.StringIO(), force_terminal=True, width=80), live=True)
    for number, item in enumerate(items, 1):
        view(item.with_fields(id=number) if isinstance(item, Event) else item)
    console = Console(file=io.StringIO(), width=80, highlight=False)
    with console.capture() as captured:
        console.print(view.activity)
    return captured.get()


def test_a_reply_in_json_is_only_counted_while_it_streams() -> None:
    screen = live(StepStarted(), TextDelta(' {"thought": "'), TextDelta("secret" * 20))
    assert "secret" not in screen
    assert "thinking, about 33 tokens" in screen


def test_a_reply_in_prose_is_shown_while_it_streams() -> None:
    screen = live(StepStarted(), TextDelta("I look "), TextDelta("around\nnow"))
    assert "  I look around\n  now\n" in screen


def test_the_end_of_a_running_commands_output_is_shown() -> None:
    output = [OutputDelta(1, f"line {n}\n") for n in range(50)]
    screen = live(CmdRunAction(command="x"), *output, OutputDelta(1, "\x1b[2Jend{"))
    assert "line 30" not in screen
    assert "  line 49\n  end{\n" in screen
    assert "running" in screen


def test_what_streamed_is_gone_when_its_event_is_there() -> None:
    screen = live(CmdRunAction(command="x"), OutputDelta(1, "abc"), CmdOutputObservation(command="x", exit_code=0))
    assert screen.strip() == ""


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x9b31mred", "red"),
        ("\x1bcreset", "reset"),
        ("cut off \x1b", "cut off \\x1b"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
        ("bell\x07 back\x08 null\x00", "bell\\x07 back\\x08 null\\x00"),
        ("tab\tkept", "tab\tkept"),
        ("user\u202enimda", "user\\u202enimda"),
        ("a\u200bb\u061c\U000e0048", "a\\u200bb\\u061c\\U000e0048"),
        ("👨\u200d👩 ❤\ufe0f", "👨\u200d👩 ❤\ufe0f"),
        ("lone\udcff", "lone\\udcff"),
        ("naïve 世界 🙂", "naïve 世界 🙂"),
    ],
)
def test_control_sequences_are_taken_out(hostile: str, harmless: str) -> None:
    assert plain(hostile) == harmless


def test_beginnings_of_sequences_without_an_end_take_no_quadratic_time() -> None:
    assert plain("\x9d" * 300_000) == "\\x9d" * 300_000


def spent(*calls: tuple[float | None, CostSource]) -> State:
    state = State()
    for number, (amount, source) in enumerate(calls, 1):
        state.apply(CompletionEvent(id=number, model="m", response={}, cost=amount, cost_source=source))
    return state


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (spent((0.01, "price_list"), (0.0023, "price_list")), "$0.0123 from the price list"),
        (spent((0.5, "provider")), "$0.5000 from the provider"),
        (spent((0.0, "local")), "free (local)"),
        (spent((None, "unknown")), "unknown"),
        (spent((0.5, "provider"), (None, "unknown")), "at least $0.5000, 1 calls of unknown price"),
        (spent((0.0, "local"), (0.25, "price_list")), "$0.2500 from the price list"),
        (spent(), "none, no model was called"),
    ],
)
def test_a_cost_is_told_with_who_says_so(state: State, said: str) -> None:
    assert cost(state) == said


@pytest.mark.parametrize(("seconds", "said"), [(1.25, "1.2 s"), (61.4, "1 min 1 s"), (7300, "2 h 1 min")])
def test_a_time_is_told_as_people_do(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_summary_of_a_limit_says_how_to_go_on() -> None:
    state = State()
    for number, event in enumerate(
        [
            SessionStarted(agent="A", model="m", sandbox="none", limits=Limits(iterations=1)),
            MessageAction(content="x", source="user"),
            StepStarted(),
            AgentStateChangedObservation(agent_state="paused", reason="limit", content="1 iteration is enough"),
        ],
        1,
    ):
        state.apply(event.with_fields(id=number))
    lines = [line.plain for line in summary(state, "12ab", changed=False)]
    assert lines[0] == "outcome  paused: 1 iteration is enough"
    assert lines[-1] == "next     handiwork resume 12ab, with a higher limit like --max-iterations 51"


@pytest.mark.parametrize(
    ("limits", "call", "hint"),
    [
        (Limits(time=20), {}, "with a higher limit like --max-time 40"),
        (Limits(tokens=1_000), {"usage": Usage(input=2_000)}, "with a higher limit like --max-tokens 3000"),
        (Limits(cost=0.5), {"cost": 0.5}, "with a higher limit like --max-cost 1.5"),
        (Limits(cost=0.5), {"cost": None}, "at a terminal, and answer none to its question for the limit"),
    ],
)
def test_the_summary_names_the_limit_that_is_reached(limits: Limits, call: dict[str, Any], hint: str) -> None:
    state = State()
    for number, event in enumerate(
        [
            SessionStarted(agent="A", model="m", sandbox="none", limits=limits),
            MessageAction(content="x", source="user"),
            CompletionEvent(model="m", response={}, **call),
            AgentStateChangedObservation(agent_state="paused", reason="limit"),
        ],
        1,
    ):
        state.apply(event.with_fields(id=number, timestamp=datetime(2026, 1, 1, second=15 * number - 15, tzinfo=UTC)))
    assert summary(state, "12ab", changed=False)[-1].plain == f"next     handiwork resume 12ab, {hint}"


def test_a_status_beside_json_lines_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    JsonLines()(Status("x\x1b]0;title\x07\x9b2J.md is broken"))
    err = capsys.readouterr().err
    assert err == plain("x\x1b]0;title\x07\x9b2J.md is broken") + "\n"
    assert err.strip().isprintable()


@pytest.mark.parametrize(("lines", "more"), [(195, 0), (196, 1), (100_000, 99_805)])
def test_the_overview_of_changes_shows_the_first_lines_of_the_diff(tmp_path: Path, lines: int, more: int) -> None:
    (tmp_path / "data.csv").write_text("".join(f"{number}\n" for number in range(lines)))
    changes = [Change("data.csv", "added", None, side_at(tmp_path, "data.csv"))]
    tracemalloc.start()
    shown = [line.plain for line in overview(changes, "12ab")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (shown[1], shown[200]) == ("diff --git a/data.csv b/data.csv", "+194")
    rest = [f"... {more} more lines (handiwork diff 12ab)", f"{f'+{lines}':>7}     -0  data.csv"] if more else []
    assert shown[201:] == [*rest, ""]
    assert peak < 20_000_000
