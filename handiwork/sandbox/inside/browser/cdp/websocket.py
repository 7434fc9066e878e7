"""A WebSocket client (RFC 6455) for a server on this machine, for text messages only."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from enum import IntEnum

_FINAL, _MASKED = 0x80, 0x80
_NO_MASK = b"\0\0\0\0"
"""Masks protect intermediate proxies from data that web pages choose: here there is neither."""


class Kind(IntEnum):
    """The kind of a frame on the wire."""

    CONTINUED = 0
    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10


class WebSocket:
    """An open connection. Only one task may call ``receive``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int, path: str) -> WebSocket:
        """Connect to 127.0.0.1. Raises ConnectionError (an OSError) if the server speaks no WebSocket or refuses."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as broken:
            raise ConnectionError("the server hung up") from broken
        if b" 101 " not in answer.split(b"\r\n", 1)[0]:
            writer.close()
            raise ConnectionError(f"the server answered {answer[:80]!r}")
        return cls(reader, writer)

    def send(self, text: bytes) -> None:
        """Send a text message, UTF-8."""
        self._send(Kind.TEXT, text)

    async def receive(self) -> bytes:
        """Return the next text message, UTF-8. Raises ConnectionError once the connection is closed."""
        parts: list[bytes] = []
        while True:
            try:
                first, second = await self._reader.readexactly(2)
                payload = await self._reader.readexactly(await self._length(second & ~_MASKED))
            except asyncio.IncompleteReadError as broken:
                raise ConnectionError("the connection is closed") from broken
            match first & 0x0F:
                case Kind.TEXT | Kind.CONTINUED:
                    parts.append(payload)
                    if first & _FINAL:
                        return b"".join(parts) if len(parts) > 1 else payload
                case Kind.PING:
                    self._send(Kind.PONG, payload)
                case Kind.CLOSE:
                    raise ConnectionError("the server closed the connection")
                case _:
                    pass

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _length(self, short: int) -> int:
        if short < 126:
            return short
        return int.from_bytes(await self._reader.readexactly(2 if short == 126 else 8), "big")

    def _send(self, kind: Kind, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            length = bytes([_MASKED | size])
        elif size < 1 << 16:
            length = bytes([_MASKED | 126]) + size.to_bytes(2, "big")
        else:
            length = bytes([_MASKED | 127]) + size.to_bytes(8, "big")
        self._writer.write(bytes([_FINAL | kind]) + length + _NO_MASK + payload)
