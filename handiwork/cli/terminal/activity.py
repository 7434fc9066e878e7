"""The current activity, shown below the events: streaming text and a spinner."""

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

SCREEN_LINES = 10
"""The number of lines of streaming text on the screen."""
TAIL_CHARACTERS = 8192
"""The number of characters of streaming text kept, enough for those lines."""


class Activity:
    """The current work of the task and its subtasks; if several work at once, the screen shows the latest to begin."""

    def __init__(self, heading: Callable[[int], str]) -> None:
        self._heading = heading
        self._spinner = Spinner("dots", style="cyan")
        self._works: dict[int, _Work] = {}
        self._actions: dict[int, int] = {}
        self.status = ""

    def clear(self) -> None:
        """Forget all current work."""
        self._works.clear()
        self.status = ""

    def follow(self, event: Event) -> None:
        """Update the current work from an event; events of the user change nothing."""
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
        """Add a piece of streaming text."""
        if isinstance(delta, TextDelta):
            subtask, name = delta.subtask, "thinking"
        else:
            subtask, name = self._actions.get(delta.action, 0), "running"
        self._works.setdefault(subtask, _Work(name)).add(delta.text)

    def _begin(self, subtask: int, name: str) -> None:
        self._works.pop(subtask, None)  # so that the new entry is the last
        self._works[subtask] = _Work(name)

    def __rich__(self) -> Group:
        """Return the lines for the screen."""
        subtask, work = next(reversed(self._works.items()), (0, _Work("")))
        about = self.status or work.about
        if about and len(self._works) > 1:
            about += f" · {len(self._works)} at work"
        seconds = int(time.monotonic() - work.since)
        self._spinner.update(text=Text(f"{about}{f', {seconds} s' if seconds else ''}", "dim"))
        heading = [Text(f"  {self._heading(subtask)}", "cyan")] if subtask else []
        return Group(*heading, *work.lines, *([self._spinner] if about else []))


class _Work:
    """One current piece of work: its name, its start (monotonic seconds), and the tail of its streaming text."""

    def __init__(self, name: str) -> None:
        self.name, self.since = name, time.monotonic()
        self._text, self._size, self._json = "", 0, False

    def add(self, text: str) -> None:
        if not self._text:
            self._json = text.lstrip().startswith("{")
        self._size += len(text)
        self._text = (self._text + text)[-TAIL_CHARACTERS:]

    @property
    def about(self) -> str:
        has_text = self.name == "thinking" and self._size
        return f"{self.name}, about {max(1, self._size // 4)} tokens" if has_text else self.name

    @property
    def lines(self) -> list[Text]:
        if not self._text or (self.name == "thinking" and self._json):
            return []
        style = "dim" if self.name == "thinking" else ""
        lines = plain(self._text).rstrip("\n").split("\n")[-SCREEN_LINES:]
        return [Text(f"  {line}", style, no_wrap=True, overflow="ellipsis") for line in lines]
