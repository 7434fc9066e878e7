"""The sandbox's end of the egress proxy: forwards connections from a loopback port to a unix socket."""

from __future__ import annotations

import asyncio

_PIECE = 65536


class Forwarder:
    """Listens on 127.0.0.1:``port`` between ``open`` and ``close``; the socket at ``path`` is an HTTP proxy."""

    def __init__(self, port: int, path: str) -> None:
        self.port, self._path = port, path
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start to listen. Raises OSError if the port is taken."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    def close(self) -> None:
        """Close all connections and stop."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            proxy_reader, proxy_writer = await asyncio.open_unix_connection(self._path)
        except OSError:
            writer.close()  # the proxy is gone
            return
        asking = asyncio.create_task(_pass_on(reader, proxy_writer))
        try:
            await _pass_on(proxy_reader, writer)
        finally:
            asking.cancel()
            proxy_writer.close()
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()  # the other side notices by its own connection's end
