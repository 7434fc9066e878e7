"""The live view of a session in a terminal, or its plain text where there is none."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from handiwork.cli.plain import plain
from handiwork.cli.transcript import Transcript
from handiwork.events.base import Action, Event
from handiwork.events.record import StepStarted
from handiwork.session.watch import OutputDelta, Status, TextDelta

SHOWN = 10
"""Lines of what is streaming that are on the screen."""
KEPT = 8192
"""Characters of what is streaming that are kept, enough for those lines."""


def terminal_console(file: IO[str] | None = None) -> Console:
    """Return a console that prints just what it is given: no markup, no guesses, no wrapping of its own."""
    return _Console(file=file, markup=False, emoji=False, highlight=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the error through: rich itself would exit with the code of a failed task."""
        raise BrokenPipeError


class Activity:
    """What goes on now: a spinner, what it is about, and the last lines of what streams."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots", style="cyan")
        self.begin("")

    def begin(self, what: str) -> None:
        """Something new begins."""
        self._what, self._text, self._size, self._since = what, "", 0, time.monotonic()
        self.status = ""

    def add(self, text: str) -> None:
        """More of it arrives."""
        if not self._text:
            self._json = text.lstrip().startswith("{")
        self._size += len(text)
        self._text = (self._text + text)[-KEPT:]

    def __rich__(self) -> Group:
        """Return what is on the screen at this moment."""
        lines: list[str] = []
        hidden = self._what == "thinking" and self._text and self._json
        if self._text and not hidden:
            lines = plain(self._text).rstrip("\n").split("\n")[-SHOWN:]
        about = self.status or self._what
        if self._what == "thinking" and self._size and not self.status:
            about += f", about {max(1, self._size // 4)} tokens"
        seconds = int(time.monotonic() - self._since)
        self._spinner.update(text=Text(f"{about}{f', {seconds} s' if seconds else ''}", "dim"))
        style = "dim" if self._what == "thinking" else ""
        streamed = [Text(f"  {line}", style, no_wrap=True, overflow="ellipsis") for line in lines]
        return Group(*streamed, self._spinner) if about else Group(*streamed)


class View:
    """Prints a session as it goes; events up to the id ``after`` are only counted.

    ``stepped`` tells whether the agent took a step since then.
    On a terminal what streams is shown below and replaced by the event when that comes; elsewhere only the
    events are printed, and each status once.
    """

    def __init__(self, console: Console, live: bool) -> None:
        self.console = console
        self.transcript = Transcript()
        self.after = 0
        self.stepped = False
        self.activity = Activity()
        self._live = (
            Live(
                self.activity,
                console=console,
                transient=True,
                refresh_per_second=8,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if live
            else None
        )
        self._last_status = ""

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @contextmanager
    def still(self) -> Generator[None]:
        """Leave the terminal alone, for a question to the user."""
        self.activity.begin("")
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def open(self, session: str, after: int) -> None:
        """Say which session it is, and which of its events were there before."""
        self.transcript.session, self.after = session, after

    def __call__(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        """Show an event, or what is transient; the session's Watch."""
        match item:
            case TextDelta() | OutputDelta():
                self.activity.add(item.text)
            case Status():
                self._show_status(item.text)
            case Event():
                self._show_event(item)

    def _show_status(self, text: str) -> None:
        self.activity.status = plain(text)
        # A progress report differs in its figures alone: without a terminal it is told once.
        kind = re.sub(r"[\d.]+", "", text)
        if self._live is None and kind != self._last_status:
            self.console.print(Text(f"({plain(text)})"), soft_wrap=True)
        self._last_status = kind

    def _show_event(self, event: Event) -> None:
        lines = self.transcript.lines(event)
        if event.id <= self.after:
            return
        for line in lines:
            self.console.print(line, soft_wrap=True)
        match event:
            case StepStarted():
                self.stepped = True
                self.activity.begin("thinking")
            case Action(runnable=True):
                self.activity.begin("running")
            case _:
                self.activity.begin("")
