"""Forwards bytes between two connections."""

from __future__ import annotations

import asyncio

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PIECE = 65536
_LINGER = 120.0  # seconds for the rest of an answer after the client has closed its side: it has probably gone


async def relay(client: Streams, server: Streams, length: int | None = None) -> None:
    """Forward both directions, at most ``length`` of the client's bytes if given, until the server closes its side.

    A client that has closed its side gets the answer for _LINGER seconds more. Raises OSError if one of them breaks
    off.
    """
    asking = asyncio.create_task(_forward(client[0], server[1], length))
    answering = asyncio.create_task(_forward(server[0], client[1], None))
    try:
        await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        # A client that has closed its side may still read; a server that has is sent nothing more.
        if asking.done():
            asking.result()
            await asyncio.wait({answering}, timeout=_LINGER)
        if answering.done():
            answering.result()
    finally:
        asking.cancel()
        answering.cancel()
        await asyncio.gather(asking, answering, return_exceptions=True)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> None:
    remaining = length
    while remaining != 0:
        data = await reader.read(_PIECE if remaining is None else min(_PIECE, remaining))
        if not data:
            if writer.can_write_eof():
                writer.write_eof()
            return
        writer.write(data)
        await writer.drain()
        remaining = None if remaining is None else remaining - len(data)
    while await reader.read(_PIECE):
        pass  # nothing may follow the body, but the client's end is noticed
