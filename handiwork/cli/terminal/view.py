"""The live view of a session on a terminal, or its plain text without one."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import IO, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from handiwork.cli.terminal.activity import Activity
from handiwork.cli.terminal.layout import wrapped
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.transcript import Transcript
from handiwork.events.base import Event
from handiwork.events.record import StepStarted
from handiwork.session.steps.live import OutputDelta, Status, TextDelta


def terminal_console(file: IO[str] | None = None, is_terminal: bool | None = None) -> Console:
    """Return a console that prints text verbatim: no markup, no emoji codes, no highlighting.

    ``is_terminal`` says whether its file is one; None asks the file.
    """
    return _Console(file=file, force_terminal=is_terminal, markup=False, emoji=False, highlight=False)


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    """Print lines as they are, or on a terminal as rows that break between words."""
    for line in lines:
        for row in wrapped(line, console) if console.is_terminal else (line,):
            console.print(row, soft_wrap=True)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError: rich itself would exit with the code of a failed task."""
        raise BrokenPipeError


class View:
    """Prints a session as it runs; events up to the id ``after`` are only counted.

    ``stepped`` is true once the agent took a step after them.
    On a terminal, streaming text appears below the events until its event replaces it; otherwise only events and,
    once each, statuses are printed.
    """

    def __init__(self, console: Console, live: bool) -> None:
        self.console = console
        self.reset()
        self.activity = Activity(lambda subtask: self.transcript.subtasks.heading(subtask))
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
        """Stop drawing inside the context, for a question to the user."""
        self.activity.clear()
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def reset(self, after: int = 0) -> None:
        """Begin with a session, whose first ``after`` events are only counted."""
        self.transcript = Transcript(console=self.console if self.console.is_terminal else None)
        self.after, self.stepped = after, False

    def open(self, session: str, after: int) -> None:
        """Set the session's id and the id of the last event that was in its log before."""
        self.transcript.outputs.session, self.after = session, after

    def __call__(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        """Show an event, streaming text or a status; this is the session's Observer."""
        match item:
            case TextDelta() | OutputDelta():
                self.activity.add(item)
            case Status():
                self._show_status(item.text)
            case Event():
                self._show_event(item)

    def print(self, lines: Iterable[Text]) -> None:
        """Print lines, laid out for a terminal."""
        print_lines(self.console, lines)

    def _show_status(self, text: str) -> None:
        self.activity.status = plain(text)
        # Progress reports differ only in their figures: without a terminal, print one of them.
        kind = re.sub(r"[\d.]+", "", text)
        if self._live is None and kind != self._last_status:
            self.console.print(Text(f"({plain(text)})"), soft_wrap=True)
        self._last_status = kind

    def _show_event(self, event: Event) -> None:
        lines = self.transcript.lines(event)
        self.activity.follow(event)
        if event.id <= self.after:
            return
        if self.console.is_terminal:
            self.print(lines)
        elif lines:
            # Without colours rich adds nothing but time.
            print(*(line.plain for line in lines), sep="\n", file=self.console.file, flush=True)
        self.stepped = self.stepped or isinstance(event, StepStarted)
