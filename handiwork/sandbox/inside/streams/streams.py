"""The open byte streams by their handles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from ..errors import ActionError

SendBytes = Callable[[bytes], Awaitable[None]]
"""Sends bytes to the platform; waits while the platform does not read."""

MOST = 64
"""The number of streams that are open at the same time."""


class Stream(Protocol):
    """One open stream."""

    async def serve(self, send: SendBytes) -> None:
        """Send the bytes that come from inside until the stream ends."""
        ...

    async def write(self, data: bytes) -> None:
        """Pass bytes of the platform on. Raises ActionError if the stream has ended."""
        ...

    async def end(self) -> None:
        """End the stream after the platform has closed it, so that its programs can still clean up."""
        ...

    def close(self) -> None:
        """Release everything at once. Closing twice is allowed."""
        ...


class Streams:
    """Runs streams, and finds them by their handles."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._opened = 0

    def check(self) -> None:
        """Raise ActionError if no more streams may be opened."""
        if len(self._streams) >= MOST:
            raise ActionError("failed", f"{MOST} terminals and connections are open already: close some.")

    async def run(self, stream: Stream, begin: Callable[[str], Awaitable[None]], send: SendBytes) -> None:
        """Announce the stream's handle with ``begin``, and serve the stream until it ends or this call is cancelled."""
        self._opened += 1
        handle = str(self._opened)
        self._streams[handle] = stream
        try:
            await begin(handle)
            await stream.serve(send)
        except asyncio.CancelledError:
            await stream.end()
            raise
        finally:
            del self._streams[handle]
            stream.close()

    def find(self, handle: str) -> Stream:
        """Return an open stream. Raises ActionError."""
        stream = self._streams.get(handle)
        if stream is None:
            raise ActionError("not_found", f"There is no open stream {handle}.")
        return stream

    def close(self) -> None:
        """Close all streams."""
        for stream in self._streams.values():
            stream.close()
