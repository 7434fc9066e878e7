"""Streams a command's output as lines of JSON, with bounded frequency and size."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import Awaitable, Callable

_INTERVAL = 0.02  # seconds between lines
_LIMIT = 1 << 20  # bytes of one action's output that are streamed


class Stream:
    """Turns bytes into {"output": text} lines for ``send``; ``pump`` must run while bytes are fed."""

    def __init__(self, send: Callable[[bytes, bool], Awaitable[None]]) -> None:
        self._send = send
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._pending = bytearray()
        self._left = _LIMIT
        self._arrived = asyncio.Event()
        self._sending = asyncio.Lock()

    def feed(self, data: bytes) -> None:
        """Add bytes; those over the limit are dropped."""
        data = data[: self._left]
        if data:
            self._left -= len(data)
            self._pending += data
            self._arrived.set()

    async def pump(self) -> None:
        """Send output as it arrives, until cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(_INTERVAL)
            async with self._sending:
                if line := self._take(final=False):
                    await self._send(line, False)

    async def finish(self, last: dict[str, object]) -> None:
        """Send the rest of the output and ``last``, which ends the stream."""
        async with self._sending:
            await self._send(self._take(final=True) + json_line(last), True)

    def _take(self, *, final: bool) -> bytes:
        self._arrived.clear()
        text = self._decoder.decode(bytes(self._pending), final)
        self._pending.clear()
        return json_line({"output": text}) if text else b""


def json_line(value: dict[str, object]) -> bytes:
    """Return ``value`` as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
