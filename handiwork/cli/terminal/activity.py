"""What goes on at this moment, as it is shown below the events: what streams, and a spinner."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Group
from rich.spinner import Spinner
from rich.text import Text

from handiwork.cli.terminal.sanitize import plain
from handiwork.events.base import Action, Event, Observation
from handiwork.events.record import SessionStarted, StepStarted
from handiwork.session.steps.live import OutputDelta, TextDelta

SHOWN = 10
"""Lines of what is streaming that are on the screen."""
KEPT = 8192
"""Characters of what is streaming that are kept, enough for those lines."""


class Activity:
    """What goes on in the task and its subtasks; of those at work at once, what was begun last is on the screen."""

    def __init__(self, heading: Callable[[int], str]) -> None:
        self._heading = heading
        self._spinner = Spinner("dots", style="cyan")
        self._works: dict[int, _Work] = {}
        self._actions: dict[int, int] = {}
        self.status = ""

    def clear(self) -> None:
        """Nothing goes on any more."""
        self._works.clear()
        self.status = ""

    def follow(self, event: Event) -> None:
        """Take up an event: something has begun or ended, if it is not only the user who said something."""
        if event.source == "user":
            return
        self.status = ""
        match event:
            case SessionStarted():
                self._works.clear()
            case StepStarted():
                self._begin(event.subtask, "thinking")
            case Action(runnable=True):
                self._actions[event.id] = event.subtask
                self._begin(event.subtask, "running")
            case Observation(cause=int(action)) if action in self._actions:
                del self._actions[action]
                self._works.pop(event.subtask, None)
                if event.subtask in self._actions.values():
                    self._begin(event.subtask, "running")
            case _:
                self._works.pop(event.subtask, None)

    def add(self, delta: TextDelta | OutputDelta) -> None:
        """More of what streams arrives."""
        if isinstance(delta, TextDelta):
            subtask, what = delta.subtask, "thinking"
        else:
            subtask, what = self._actions.get(delta.action, 0), "running"
        self._works.setdefault(subtask, _Work(what)).add(delta.text)

    def _begin(self, subtask: int, what: str) -> None:
        self._works.pop(subtask, None)  # so that it comes last
        self._works[subtask] = _Work(what)

    def __rich__(self) -> Group:
        """Return what is on the screen at this moment."""
        subtask, work = next(reversed(self._works.items()), (0, _Work("")))
        about = self.status or work.about
        if about and len(self._works) > 1:
            about += f" · {len(self._works)} at work"
        seconds = int(time.monotonic() - work.since)
        self._spinner.update(text=Text(f"{about}{f', {seconds} s' if seconds else ''}", "dim"))
        heading = [Text(f"  {self._heading(subtask)}", "cyan")] if subtask else []
        return Group(*heading, *work.lines, *([self._spinner] if about else []))


class _Work:
    """One thing that goes on: what it is, since when (monotonic seconds), and the end of what it streams."""

    def __init__(self, what: str) -> None:
        self.what, self.since = what, time.monotonic()
        self._text, self._size, self._json = "", 0, False

    def add(self, text: str) -> None:
        if not self._text:
            self._json = text.lstrip().startswith("{")
        self._size += len(text)
        self._text = (self._text + text)[-KEPT:]

    @property
    def about(self) -> str:
        counted = self.what == "thinking" and self._size
        return f"{self.what}, about {max(1, self._size // 4)} tokens" if counted else self.what

    @property
    def lines(self) -> list[Text]:
        if not self._text or (self.what == "thinking" and self._json):
            return []
        style = "dim" if self.what == "thinking" else ""
        lines = plain(self._text).rstrip("\n").split("\n")[-SHOWN:]
        return [Text(f"  {line}", style, no_wrap=True, overflow="ellipsis") for line in lines]
