"""``handiwork`` at a terminal that a program reads like a person: by what its screen shows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pyte

from tests.cli.program import HANDIWORK, PATIENCE, Program

LINES = 40
ENTER, CTRL_C, CTRL_D, TAB = "\r", "\x03", "\x04", "\t"


class Screen:
    """The program at a terminal of ``columns``; ``raw`` is all that it wrote."""

    def __init__(self, program: Program, *arguments: str, columns: int = 80, **environment: str) -> None:
        self._screen = pyte.HistoryScreen(columns, LINES, history=5000, ratio=0.1)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        # The workers of pytest have a COLUMNS, which rich believes rather than the terminal.
        variables = {name: value for name, value in program.environment.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", HANDIWORK, *arguments],
            cwd=program.workspace,
            env={**variables, **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    @property
    def text(self) -> str:
        """What has scrolled away and what the screen shows, without blanks at the ends of lines."""
        columns = range(self._screen.columns)
        above = ["".join(row[column].data for column in columns) for row in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self._screen.display])

    def colour_of(self, text: str) -> str:
        """Return the colour of the first character of the text on the screen."""
        for number, line in enumerate(self._screen.display):
            if (column := line.find(text)) >= 0:
                return self._screen.buffer[number][column].fg
        raise AssertionError(f"{text!r} is not on the screen: {self.text}")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def enter(self, text: str) -> None:
        """Type a line once the input line has taken all before, and send it."""
        self.type(text)
        if text:
            self.until(f"> {text[:30]}")
        self.type(ENTER)

    def until(self, *texts: str) -> str:
        """Wait until all of this has come, however it is broken into rows, and return the text of the screen."""
        deadline = time.monotonic() + PATIENCE
        while not all(text in self.text or "".join(text.split()) in "".join(self.text.split()) for text in texts):
            assert time.monotonic() < deadline, f"{texts} did not come: {self.text}"
            assert self._read(), f"it ended before {texts} came: {self.text}"
        return self.text

    def exit_code(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], PATIENCE)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the terminal was closed on the other side
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)
