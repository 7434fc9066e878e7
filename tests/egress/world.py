"""An internet of our own: names, addresses, and one real web server behind all of them; and proxies into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.events.record import EgressEvent
from handiwork.sandbox.egress.internet import Internet
from handiwork.sandbox.egress.proxy import Egress, Proxy
from handiwork.sandbox.egress.relay import Streams

PUBLIC, OTHER = "93.184.216.34", "93.184.216.35"


class World(Internet):
    """``names`` are resolved to each of their lists of addresses in turn; every connection ends at ``port``."""

    def __init__(self, names: Mapping[str, list[list[str]]], port: int, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self._names, self._port = {name: list(answers) for name, answers in names.items()}, port
        self.connected: list[tuple[str, int]] = []

    async def resolve(self, host: str) -> list[str]:
        if host not in self._names:
            raise OSError("no such name")
        answers = self._names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, host: str, port: int, tls: bool = False) -> Streams:
        self.connected.append((host, port))
        return await asyncio.open_connection("127.0.0.1", self._port)


@dataclass
class Way:
    """A proxy at work, what it decided, and what reached the web server."""

    world: World
    socket: Path
    allowed: list[str]
    events: list[EgressEvent] = field(default_factory=list[EgressEvent])
    received: list[bytes] = field(default_factory=list[bytes])
    running: bool = True

    async def record(self, event: EgressEvent) -> bool:
        if self.running:
            self.events.append(event)
        return self.running

    @property
    def egress(self) -> Egress:
        return Egress(lambda: self.allowed, self.record, self.world)

    async def ask(self, data: bytes) -> str:
        """Send this and return all that is answered, until the connection is closed."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return answer.decode()

    async def tunnel(self, authority: str) -> str:
        """Ask for a tunnel and, where there is one, for a page through it; return the first line of the answer."""
        request = b"GET /inner HTTP/1.0\r\n\r\n"
        answer = await self.ask(b"CONNECT %s HTTP/1.1\r\n\r\n%s" % (authority.encode(), request))
        return answer.partition("\r\n")[0]

    async def get(self, url: str, *headers: str) -> str:
        """Ask for a page by plain HTTP."""
        return await self.ask("\r\n".join([f"GET {url} HTTP/1.1", *headers, "", ""]).encode())


@asynccontextmanager
async def way_out(
    folder: Path,
    *allowed: str,
    names: Mapping[str, list[list[str]]] | None = None,
    environment: Mapping[str, str] | None = None,
    greeting: bytes = b"",
) -> AsyncGenerator[Way]:
    """Serve a proxy that allows this; the web server says ``greeting`` first, as a proxy that makes a tunnel does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if greeting:
            way.received.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(greeting)
        way.received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhere I am\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        world = World(names or {"example.org": [[PUBLIC]]}, server.sockets[0].getsockname()[1], environment or {})
        way = Way(world, folder / "p", list(allowed))
        proxy = Proxy(way.egress)
        await proxy.listen(way.socket)
        try:
            yield way
        finally:
            await proxy.close()
