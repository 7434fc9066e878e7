"""The client of WebSocket against a server that speaks it by the letter."""

from __future__ import annotations

import asyncio

import pytest

from handiwork.sandbox.inside.browser.cdp.websocket import WebSocket

FINAL, MASKED = 0x80, 0x80
CONTINUED, TEXT, PING = 0, 1, 9


def frame(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes([kind, size]) + payload
    if size < 65536:
        return bytes([kind, 126]) + size.to_bytes(2, "big") + payload
    return bytes([kind, 127]) + size.to_bytes(8, "big") + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """One frame of a client, which is masked."""
    kind, size = await reader.readexactly(2)
    assert size & MASKED
    size &= ~MASKED
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    mask = await reader.readexactly(4)
    payload = await reader.readexactly(size)
    return kind, bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


async def serve(sent: list[bytes], answers: list[tuple[int, bytes]]) -> asyncio.Server:
    """Accept one client, send it frames, take down one frame of its own, and hang up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert b"Upgrade: websocket" in request
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"".join(sent))
        answers.append(await read_frame(reader))
        writer.close()

    return await asyncio.start_server(talk, "127.0.0.1", 0)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 1_000_000])
async def test_messages_of_all_sizes_go_both_ways(size: int):
    message, answers = b"x" * size, list[tuple[int, bytes]]()
    async with await serve([frame(FINAL | TEXT, message)], answers) as server:
        socket = await WebSocket.connect(server.sockets[0].getsockname()[1], "/")
        assert await socket.receive() == message
        socket.send(message)
        with pytest.raises(ConnectionError):
            await socket.receive()
        assert answers == [(FINAL | TEXT, message)]
        await socket.close()


async def test_a_message_in_parts_with_a_ping_between_is_one_message():
    answers = list[tuple[int, bytes]]()
    parts = [
        frame(TEXT, b"one "),
        frame(FINAL | PING, b"?"),
        frame(CONTINUED, b"and "),
        frame(FINAL | CONTINUED, b"two"),
    ]
    async with await serve(parts, answers) as server:
        socket = await WebSocket.connect(server.sockets[0].getsockname()[1], "/")
        assert await socket.receive() == b"one and two"
        with pytest.raises(ConnectionError):
            await socket.receive()
        assert answers == [(FINAL | 10, b"?")]
        await socket.close()


async def test_a_server_that_refuses_is_an_error():
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        with pytest.raises(ConnectionError, match="404"):
            await WebSocket.connect(server.sockets[0].getsockname()[1], "/nothing")
