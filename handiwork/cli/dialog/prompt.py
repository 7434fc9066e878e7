"""Signals and questions: how the user stops a session and says what next."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Calls what is set as ``handler`` on the event loop for Ctrl-C and for requests to end.

    ``ending`` is true once the latter came, from when on nobody is there to be asked.
    """

    def __init__(self, default: Callable[[], object]) -> None:
        self.handler = self._default = default
        self.ending = False

    @contextmanager
    def watched(self) -> Generator[None]:
        """Take the signals over for as long as this holds."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on, number)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    @contextmanager
    def handled_by(self, handler: Callable[[], object]) -> Generator[None]:
        """Have ``handler`` called instead for as long as this holds."""
        self.handler = handler
        try:
            yield
        finally:
            self.handler = self._default

    def _on(self, number: signal.Signals) -> None:
        self.ending = self.ending or number != signal.SIGINT
        self.handler()


async def ask(question: str, signals: Signals) -> str | None:
    """Return what the user writes on the terminal; None for end of file or a signal.

    What was typed before the question is dropped; several lines pasted at once are one answer.
    """
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
    answer: asyncio.Future[bytes] = loop.create_future()

    def settle(read: Callable[[], bytes]) -> None:
        if not answer.done():
            answer.set_result(read())

    termios.tcflush(fd, termios.TCIFLUSH)
    sys.stdout.write(question)
    sys.stdout.flush()
    loop.add_reader(fd, settle, lambda: _read_lines(fd))
    try:
        with signals.handled_by(lambda: settle(lambda: b"")):
            text = await answer
    finally:
        loop.remove_reader(fd)
    if not text:
        sys.stdout.write("\n")
        return None
    return text.decode(errors="replace").strip()


def _read_lines(fd: int) -> bytes:
    found = b""
    while chunk := os.read(fd, 4096):
        found += chunk
        if not select.select([fd], [], [], 0)[0]:
            break
    return found
