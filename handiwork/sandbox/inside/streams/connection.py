"""Connections to servers that programs run in the sandbox, and the ports on which those listen."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Collection, Iterator

from ..actions import Json, RequestError
from ..errors import ActionError
from .streams import SendBytes

_PIECE = 65536
_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_HOSTS = ("127.0.0.1", "::1")
_LISTEN = "0A"
_CONNECT = 10.0  # seconds


class ServerConnection:
    """A connection to a server inside."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def serve(self, send: SendBytes) -> None:
        """Send the server's bytes until it closes the connection."""
        with contextlib.suppress(OSError):
            while data := await self._reader.read(_PIECE):
                await send(data)

    async def write(self, data: bytes) -> None:
        """Send bytes to the server. Raises ActionError if it has closed the connection."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ActionError("not_found", f"The server has closed the connection: {error}") from error

    async def end(self) -> None:
        """Do nothing: a server needs no warning."""

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def connect(port: int) -> ServerConnection:
    """Connect to a server on the loopback. Raises ActionError if there is none."""
    problem = ""
    for host in _HOSTS:
        try:
            async with asyncio.timeout(_CONNECT):
                return ServerConnection(*await asyncio.open_connection(host, port))
        except OSError as error:
            problem = problem or error.strerror or "no answer"
    raise ActionError("not_found", f"No server answers on port {port} in the sandbox: {problem}")


def listening_ports(hidden: Collection[int], *, own: bool) -> list[int]:
    """Return the TCP ports on which programs listen, ascending, without the ``hidden`` ones.

    With ``own`` only those of this process's descendants, for a sandbox that shares the machine's network.
    """
    sockets = _descendants_sockets() if own else None
    ports = {port for port, inode in _listeners() if sockets is None or inode in sockets}
    return sorted(ports.difference(hidden))


def _listeners() -> Iterator[tuple[int, str]]:
    """Yield the port and the inode of every listening socket."""
    for table in _TABLES:
        with contextlib.suppress(FileNotFoundError), open(table, encoding="ascii") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == _LISTEN:
                    yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _descendants_sockets() -> set[str]:
    """Return the inodes of the sockets that this process's descendants have open."""
    inodes: set[str] = set()
    pids = [str(os.getpid())]
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                    pids += file.read().split()  # the loop continues with them
        if pid == pids[0]:
            continue
        with contextlib.suppress(OSError):
            for descriptor in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    kind, _, inode = os.readlink(descriptor.path).partition(":")
                    if kind == "socket":
                        inodes.add(inode.strip("[]"))
    return inodes


def parse_port(request: Json) -> int:
    """Return the port of a request. Raises RequestError."""
    match request:
        case {"port": int(port)} if 0 < port < 1 << 16:
            return port
        case _:
            raise RequestError('The body must have the number "port".')
