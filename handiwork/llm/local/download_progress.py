"""The progress of a download: a bar on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

PAUSE = 5.0
"""Seconds between two lines without a terminal."""


def to_stderr(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Reporter:
    """Shows the progress of the download of ``name`` from its first byte on; call it with bytes done and in total.

    ``status`` gets lines; None means standard error, with a bar if that is a terminal.
    """

    def __init__(self, name: str, status: Callable[[str], None] | None) -> None:
        self._name = name
        self._status = status or to_stderr
        self._bar: Progress | None = None
        self._console = Console(stderr=True)
        self._draw = status is None and self._console.is_terminal
        self._began: tuple[float, int] | None = None
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes have arrived."""
        if self._draw:
            self._update_bar(done, total)
        else:
            self._print_line(done, total)

    def _update_bar(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = Progress(
                TextColumn("fetching {task.description}"),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._bar.add_task(self._name, total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done)

    def _print_line(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = (now, done)
        if now - self._last < PAUSE and done < total:
            return
        self._last = now
        line = f"fetching {self._name}: {done / 1e6:.0f} of {total / 1e6:.0f} MB"
        began, first_bytes = self._began
        if done > first_bytes:
            rate = (done - first_bytes) / max(now - began, 0.001)
            line += f", {rate / 1e6:.1f} MB/s, {(total - done) / rate:.0f} s left"
        self._status(line)
