"""Signals and questions: how the user stops a session and gives the next instruction."""

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
    """Calls ``handler`` on the event loop for Ctrl-C, SIGTERM and SIGHUP.

    ``ending`` becomes true with SIGTERM or SIGHUP: the user must not be asked after that.
    """

    def __init__(self, default: Callable[[], object]) -> None:
        self.handler = self._default = default
        self.ending = False

    @contextmanager
    def watched(self) -> Generator[None]:
        """Handle the signals inside the context, except a SIGHUP that nohup has set to be ignored."""
        loop = asyncio.get_running_loop()
        numbers = [one for one in SIGNALS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]
        for number in numbers:
            loop.add_signal_handler(number, self._on, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    @contextmanager
    def handled_by(self, handler: Callable[[], object]) -> Generator[None]:
        """Call ``handler`` instead of the default inside the context."""
        self.handler = handler
        try:
            yield
        finally:
            self.handler = self._default

    def _on(self, number: signal.Signals) -> None:
        self.ending = self.ending or number != signal.SIGINT
        self.handler()


class TerminalPrompt:
    """Asks questions at the terminal.

    Input typed before a question is dropped, except behind a slash command; several lines pasted at once are one
    answer.
    """

    def __init__(self, signals: Signals) -> None:
        self._signals, self._last = signals, ""

    async def __call__(self, question: str) -> str | None:
        """Return the user's answer; None for end of file or a signal."""
        loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
        answer: asyncio.Future[bytes] = loop.create_future()
        received = bytearray()

        def settle(text: bytes) -> None:
            if not answer.done():
                answer.set_result(text)

        def receive() -> None:
            received.extend(_read_lines(fd))
            if begun := _read_begun_line(fd):
                received.extend(begun)  # the end of a paste without a line break: Enter ends it
            else:
                settle(bytes(received))

        if not self._last.startswith("/"):
            termios.tcflush(fd, termios.TCIFLUSH)
        sys.stdout.write(question)
        sys.stdout.flush()
        loop.add_reader(fd, receive)
        try:
            with self._signals.handled_by(lambda: settle(b"")):
                text = await answer
        finally:
            loop.remove_reader(fd)
        if not text:
            sys.stdout.write("\n")
            return None
        self._last = text.decode(errors="replace").strip()
        return self._last


def _read_lines(fd: int) -> bytes:
    data = b""
    while chunk := os.read(fd, 4096):
        data += chunk
        if not select.select([fd], [], [], 0)[0]:
            break
    return data


def _read_begun_line(fd: int) -> bytes:
    """Return the text of a line that nothing has ended yet, which the terminal gives in no other mode."""
    attributes = termios.tcgetattr(fd)
    termios.tcsetattr(fd, termios.TCSANOW, [*attributes[:3], attributes[3] & ~termios.ICANON, *attributes[4:]])
    try:
        return os.read(fd, 4096) if select.select([fd], [], [], 0)[0] else b""
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
