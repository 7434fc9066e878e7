"""A server that speaks the control protocol and lies: ``python lying_server.py FD FILE``.

It listens on the descriptor and gives what is in the file to every action. Standard library only: it starts quickly.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

Answer = Callable[[str], AsyncIterator[bytes]]

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, answer: Answer) -> None:
    """Read one request, and send ``head`` and what ``answer`` gives for its path."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):  # the client has had enough
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        sizes = [row.split(":")[1] for row in request.lower().split("\r\n") if row.startswith("content-length:")]
        await reader.readexactly(int(sizes[0]) if sizes else 0)
        writer.write(head)
        async for piece in answer(request.split()[1]):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until killed."""
    lie = Path(sys.argv[2]).read_bytes()

    async def answer(path: str) -> AsyncIterator[bytes]:
        yield lie if path == "/execute" else b"{}"

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer, OK, answer)

    listener = socket.socket(fileno=int(sys.argv[1]))
    await (await asyncio.start_unix_server(accept, sock=listener)).serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
