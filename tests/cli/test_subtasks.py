"""Delegates and children in the view, and what the user and the platform decided: events in, text out."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from handiwork.cli.terminal.transcript import Transcript
from handiwork.cli.terminal.view import View, terminal_console
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    CmdRunAction,
    ForkAction,
)
from handiwork.events.base import Event
from handiwork.events.observation import (
    AgentDelegateObservation,
    AgentStateChangedObservation,
    ChildOutcome,
    CmdOutputObservation,
    ErrorObservation,
    FileReadObservation,
    ForkObservation,
    UserRejectObservation,
)
from handiwork.events.overview import WorkspaceOverviewObservation
from handiwork.events.record import (
    ApprovalEvent,
    CondensationEvent,
    Limits,
    LoopEvent,
    SessionStarted,
    SettingsChanged,
    StepStarted,
)
from handiwork.session.steps.live import OutputDelta, TextDelta

STARTED = SessionStarted(agent="Leader", model="m", sandbox="bubblewrap")
DELEGATED: list[Event] = [
    STARTED,
    StepStarted(),
    AgentDelegateAction(agent="agents.py:Browser", inputs={"task": "find the page\nand read it", "url": "here"}),
    StepStarted(subtask=3),
    CmdRunAction(command="ls\npwd", subtask=3),
    CmdOutputObservation(command="", content="a\nb\n", exit_code=0, cause=5, subtask=3),
    AgentDelegateAction(agent="Reader", inputs={"task": "read"}, subtask=3),
    StepStarted(subtask=7),
    AgentFinishAction(subtask=7),
    AgentDelegateObservation(agent="Reader", content="Reader finished.", cause=7, subtask=3),
    ErrorObservation(content="no page", subtask=3),
    AgentDelegateObservation(agent="agents.py:Browser", content="Browser finished. text: one\ntwo", cause=3),
]
DELEGATED_TEXT = """\
Leader · m · bubblewrap · session 12ab

step 1  event 2
  -> Browser: find the page
     and read it
     url: here

    step 2  event 4
      $ ls
      > pwd
      a
      b
      -> Reader: read

        step 3  event 8
          finish
      <- Reader finished.
      no page
  <- Browser finished. text: one
     two
"""
FORKED: list[Event] = [
    STARTED,
    ForkAction(children=(("Coder", {"task": "left"}), ("Coder", {"task": "right"}))),
    AgentDelegateAction(agent="Coder", inputs={"task": "left"}, source="environment", cause=2),
    AgentDelegateAction(agent="Coder", inputs={"task": "right"}, source="environment", cause=2),
    StepStarted(subtask=3),
    StepStarted(subtask=4),
    CmdRunAction(command="make left", subtask=3),
    CmdOutputObservation(command="", content="made\n", exit_code=0, cause=7, subtask=3),
    CmdRunAction(command="make right", subtask=4),
    ForkObservation(
        cause=2,
        outcomes=(
            ChildOutcome(agent="Coder", outcome="finished", diff="--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-1\n+2\n+3\n"),
            ChildOutcome(agent="Coder", outcome="error"),
        ),
    ),
]
FORKED_TEXT = """\
Leader · m · bubblewrap · session 12ab
  2 subtasks side by side
  -> 1 Coder: left
  -> 2 Coder: right
  <- 1 Coder: finished, +2 -1 lines
  <- 2 Coder: error, +0 -0 lines
"""
FORKED_IN_FULL = """\
Leader · m · bubblewrap · session 12ab
  2 subtasks side by side
  -> 1 Coder: left
  -> 2 Coder: right

  -> 1 Coder
    step 1  event 5

  -> 2 Coder
    step 2  event 6
  -> 1 Coder
      $ make left
      made
  -> 2 Coder
      $ make right
  <- 1 Coder: finished, +2 -1 lines
  <- 2 Coder: error, +0 -0 lines
"""


def numbered(events: list[Event]) -> list[Event]:
    return [event.with_fields(id=number) for number, event in enumerate(events, 1)]


def viewed(events: list[Event], after: int = 0) -> str:
    file = io.StringIO()
    view = View(terminal_console(file), live=False)
    view.open("12ab", after)
    for event in numbered(events):
        view(event)
    return file.getvalue()


def test_a_delegates_lines_stand_below_the_action_that_called_it() -> None:
    assert viewed(DELEGATED) == DELEGATED_TEXT


def test_children_that_work_side_by_side_are_their_tasks_and_outcomes() -> None:
    assert viewed(FORKED) == FORKED_TEXT


def test_in_full_the_steps_of_children_that_work_side_by_side_are_told_apart() -> None:
    transcript = Transcript("12ab", full=True)
    lines = [line.plain for event in numbered(FORKED) for line in transcript.lines(event)]
    assert "\n".join(lines) + "\n" == FORKED_IN_FULL


def test_of_a_delegates_output_a_few_lines_are_shown() -> None:
    output = "".join(f"line {number}\n" for number in range(30))
    long = CmdOutputObservation(command="", content=output, exit_code=0, cause=5, subtask=3)
    shown = viewed([*DELEGATED[:5], long])
    assert "line 3\n      ... 22 more lines (handiwork show 12ab --full)\n      line 26\n" in shown


@pytest.mark.parametrize(("lines", "shown"), [(8, "line 7"), (9, "line 8"), (10, "... 2 more lines")])
def test_a_single_line_is_not_left_out(lines: int, shown: str) -> None:
    output = "".join(f"line {number}\n" for number in range(lines))
    long = CmdOutputObservation(command="", content=output, exit_code=0, cause=5, subtask=3)
    assert shown in viewed([*DELEGATED[:5], long])
    assert ("more lines" in viewed([*DELEGATED[:5], long])) is (lines == 10)


def test_a_file_that_a_delegate_reads_is_named_and_in_full_its_text_shown() -> None:
    read = FileReadObservation(path="a.py", content="x = 1\n", start=1, end=1, lines=1, cause=5, subtask=3)
    assert "x = 1" not in viewed([*DELEGATED[:5], read])
    assert "      a.py: lines 1 to 1 of 1\n" in viewed([*DELEGATED[:5], read])
    transcript = Transcript("12ab", full=True)
    assert "x = 1" in "\n".join(line.plain for event in numbered([read]) for line in transcript.lines(event))


def test_of_the_overview_of_the_workspace_the_number_of_files_is_shown() -> None:
    overview = WorkspaceOverviewObservation(content="Files:\na.py", paths=("a.py", "b.py"), files=2, shown=("a.py",))
    assert viewed([overview]) == "  1 of 2 files read\n"
    (text, *_) = [line.plain for line in Transcript("12ab", full=True).lines(overview)]
    assert text == "  Files:"


def test_a_subtask_that_is_resumed_is_headed_again() -> None:
    resumed = [*DELEGATED[:4], STARTED, *DELEGATED[4:5]]
    assert viewed(resumed, after=4) == "  -> Browser\n      $ ls\n      > pwd\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (LoopEvent(first=1, rule="repeat", times=4, content="four times"), "the agent repeats itself: four times"),
        (CondensationEvent(first=3, last=9, how="collapse"), "in the model's context, events 3 to 9 are shortened"),
        (CondensationEvent(first=3, last=9, summary="x"), "in the model's context, events 3 to 9 are summarised"),
        (CondensationEvent(first=3, last=9, how="rewind"), "in the model's context, events 3 to 9 are removed"),
        (ApprovalEvent(action=1, allowed=True), "you: yes"),
        (
            ApprovalEvent(action=1, allowed=True, rule="command mkdir *"),
            "you: yes, for this session: command mkdir *",
        ),
        (ApprovalEvent(action=1, allowed=False), "you: no"),
        (ApprovalEvent(action=1, allowed=False, comment="not now"), "you: no, not now"),
        (UserRejectObservation(content="not now"), "refused"),
        (SettingsChanged(model="openai:x", confirmation="risky"), "changed: model: openai:x; confirmation: risky"),
        (SettingsChanged(limits=Limits(cost=1.5)), "changed: limits: 100 steps, $1.5"),
        (SettingsChanged(limits=Limits(iterations=None)), "changed: limits: none"),
        (
            AgentStateChangedObservation(agent_state="awaiting_user_confirmation", reason="user", content="why"),
            "needs your approval: why",
        ),
    ],
)
def test_what_was_decided_is_one_line(event: Event, line: str) -> None:
    assert viewed([event]) == f"  {line}\n"


def live(events: list[Event], *streams: TextDelta | OutputDelta) -> str:
    """Return what is on the screen below the events."""
    view = View(Console(file=io.StringIO(), force_terminal=True, width=80), live=True)
    for item in [*numbered(events), *streams]:
        view(item)
    console = Console(file=io.StringIO(), width=80, highlight=False)
    with console.capture() as captured:
        console.print(view.activity)
    return captured.get()


def test_of_several_that_stream_the_newest_is_on_the_screen() -> None:
    deltas = (OutputDelta(7, "from the left\n"), TextDelta("from the right\n", 4), OutputDelta(7, "more left\n"))
    screen = live(FORKED[:7], *deltas)
    assert screen.startswith("  -> 1 Coder\n  from the left\n  more left\n")
    assert "from the right" not in screen
    assert "running · 2 at work" in screen


def test_when_the_newest_is_done_what_the_other_streamed_is_shown() -> None:
    view_of_both = live([*FORKED[:6], STARTED], TextDelta("from the left\n", 3), TextDelta("from the right\n", 4))
    assert view_of_both.startswith("  -> 2 Coder\n  from the right\n")
    screen = live([*FORKED[:6], AgentFinishAction(subtask=4)], TextDelta("from the left\n", 3))
    assert screen.startswith("  -> 1 Coder\n  from the left\n")
    assert "at work" not in screen


def test_actions_that_wait_for_their_turn_are_shown_when_it_comes() -> None:
    both: list[Event] = [CmdRunAction(command="one"), CmdRunAction(command="two")]
    first = CmdOutputObservation(command="", exit_code=0, cause=1)
    assert "  of the second\n" in (screen := live([*both, first], OutputDelta(2, "of the second\n")))
    assert "running" in screen
