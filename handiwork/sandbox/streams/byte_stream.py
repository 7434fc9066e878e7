"""A user's terminal in a sandbox, or a connection to a server there, as seen from outside; its bytes are data."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import httpx2

from handiwork.errors import SandboxError
from handiwork.sandbox.responses import NOT_UNDERSTOOD, json_object

Size = tuple[int, int]
"""The rows and columns of a terminal."""

SendRequest = Callable[[str, str, bytes], Awaitable[None]]
"""Sends a request about a stream: method, path and body."""

_FIRST_LINE = 1024  # bytes


class StreamRefusedError(SandboxError):
    """The terminal or connection cannot be opened; the text says why."""


class ByteStream:
    """An open stream: ``handle`` names it in requests, ``pieces`` are the bytes from inside."""

    def __init__(self, handle: str, pieces: AsyncIterator[bytes], send: SendRequest) -> None:
        self._handle, self._pieces, self._send = handle, pieces, send

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises SandboxError if the sandbox is lost."""
        return await anext(self._pieces, b"")

    async def write(self, data: bytes) -> None:
        """Send bytes inside. Raises SandboxError if the stream has ended."""
        await self._send("PUT", f"/stream/{self._handle}", data)

    async def resize(self, size: Size) -> None:
        """Change a terminal's size. Raises SandboxError."""
        await self._send("POST", f"/resize/{self._handle}", json.dumps(as_fields(size)).encode())


def as_fields(size: Size) -> Mapping[str, int]:
    """Return the size as fields of a request."""
    return {"rows": size[0], "columns": size[1]}


async def opened_stream(response: httpx2.Response, send: SendRequest) -> ByteStream:
    """Return the stream of a response, whose first line has its handle. Raises SandboxError."""
    pieces = response.aiter_raw()
    head = b""
    while b"\n" not in head and len(head) < _FIRST_LINE and (piece := await anext(pieces, b"")):
        head += piece
    line, _, rest = head.partition(b"\n")
    match json_object(line):
        case {"stream": str(handle)} if handle.isascii() and handle.isalnum():
            return ByteStream(handle, _with_first(rest, pieces), send)
        case _:
            raise SandboxError(NOT_UNDERSTOOD)


async def _with_first(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in pieces:
        yield piece
