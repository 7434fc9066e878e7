"""A program inside a sandbox that the platform talks to through stdin and stdout; all its output is data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from handiwork.errors import SandboxError

LINE_LIMIT = 16 << 20
"""Bytes of one line of a program's stdout."""

ERRORS_KEPT = 8192
"""Characters of the end of a program's stderr that are kept."""

PIECE_LIMIT = 1 << 20
"""Bytes of one line of the control protocol about a program; the server inside sends pieces of 64 KiB of output."""


class PipeError(SandboxError):
    """The program cannot be started, or its stdout has a line that is too long."""


class Pipe:
    """A running program: ``lines`` reads its stdout, ``write`` writes to its stdin.

    ``errors`` is the end of its stderr so far, and ``on_errors`` is called with each piece of it. ``exit_code`` is its
    exit code once it has ended, negative for a signal.
    """

    def __init__(self, pieces: AsyncIterator[dict[str, Any]], write: Callable[[bytes], Awaitable[None]]) -> None:
        self.errors = ""
        self.on_errors: Callable[[str], None] = lambda _: None
        self.exit_code: int | None = None
        self._pieces, self._write = pieces, write

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines of stdout, without their ends, until the program ends. Raises PipeError, SandboxError."""
        parts: list[str] = []
        size = 0
        async for piece in self._pieces:
            match piece:
                case {"out": str(text)}:
                    *ends, rest = text.split("\n")
                    for end in ends:
                        yield "".join([*parts, end])
                        parts, size = [], 0
                    parts.append(rest)
                    size += len(rest)
                    if size > LINE_LIMIT:
                        raise PipeError(f"the program printed a line of more than {LINE_LIMIT} characters.")
                case {"err": str(text)}:
                    self.errors = (self.errors + text)[-ERRORS_KEPT:]
                    self.on_errors(text)
                case {"exit": int(code)}:
                    self.exit_code = code
                    return
                case _:
                    raise PipeError("the sandbox's server sent an invalid message about a program.")

    async def write(self, data: bytes) -> None:
        """Write to stdin. Raises SandboxError if the program has ended."""
        await self._write(data)
