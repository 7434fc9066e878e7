"""Layout of the lines of subtasks: indented below the action that opened them, headed by their agent's name."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from handiwork.cli.terminal.sanitize import plain
from handiwork.events.action import AgentDelegateAction
from handiwork.events.base import Event
from handiwork.events.record import SessionStarted

INDENT = "    "


class Subtasks:
    """Indents lines and adds headings, event by event in the order of the log."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._headings: dict[int, str] = {}
        self._children: Counter[int] = Counter()
        self._parallel: set[int] = set()
        self._last = 0

    def open(self, action: AgentDelegateAction) -> str:
        """Register a new subtask and return its heading; parallel subtasks are numbered."""
        number = ""
        if action.cause is not None:
            self._children[action.cause] += 1
            number = f"{self._children[action.cause]} "
            self._parallel.add(action.id)
        self._parents[action.id] = action.subtask
        self._headings[action.id] = f"-> {number}{plain(short_name(action.agent))}"
        return self._headings[action.id]

    def heading(self, subtask: int) -> str:
        """Return the heading of a subtask, "" for the task itself."""
        return self._headings.get(subtask, "")

    def is_parallel(self, subtask: int) -> bool:
        """Return whether the subtask, or one around it, runs side by side with others."""
        return not self._parallel.isdisjoint(self._ancestry(subtask))

    def indent(self, event: Event, lines: list[Text]) -> list[Text]:
        """Return the lines of an event indented, below a heading if the last lines were another subtask's."""
        depth = len(self._ancestry(event.subtask)) - 1
        if isinstance(event, SessionStarted):
            self._last = 0
        elif lines:
            needs_heading = event.subtask not in self._ancestry(self._last)
            lines = _indent_lines(lines, depth)
            if needs_heading:
                blank = [lines.pop(0)] if not lines[0].plain else []
                heading = Text(f"{INDENT * (depth - 1)}  {self.heading(event.subtask)}", "cyan")
                lines = [*blank, heading, *lines]
            # The action that opens a single subtask is its heading too; an action that opens one of several is not.
            opens = isinstance(event, AgentDelegateAction) and event.cause is None
            self._last = event.id if opens else event.subtask
        return lines

    def _ancestry(self, subtask: int) -> list[int]:
        """Return the subtask and its ancestors, up to the task itself."""
        ancestry = [subtask]
        while ancestry[-1] in self._parents:
            ancestry.append(self._parents[ancestry[-1]])
        return ancestry


def short_name(agent: str) -> str:
    """Return the name of an agent without its file or module."""
    return agent.rpartition(":")[2]


def _indent_lines(lines: list[Text], depth: int) -> list[Text]:
    return [piece for line in lines for piece in _indent_line(line, depth)] if depth else lines


def _indent_line(line: Text, depth: int) -> list[Text]:
    pieces = line.split("\n", allow_blank=True)
    return [Text(INDENT * depth).append_text(piece) if piece.plain else piece for piece in pieces]
