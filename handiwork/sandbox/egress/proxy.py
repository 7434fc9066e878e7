"""The proxy of one sandbox: it runs outside, and it is the only way out.

The sandbox has no network but its own loopback; a forwarder in it passes connections to the unix socket on which the
proxy listens. It tunnels (CONNECT) and forwards plain HTTP requests. It neither sees nor changes the content of a
tunnel, so an allowed host is trusted with everything it serves, also under other names.

A host is allowed by its name. Then the name is resolved once, by the proxy: an address that is private, of this
machine, of its cloud or otherwise not on the internet is refused, and the connection goes to exactly the checked
address, so a name that resolves differently a moment later has no effect. A refused address is reached only if the user
has allowed that very address and its port.

If this machine reaches the internet through a proxy of its own (https_proxy and the like in its environment), that
proxy resolves names. Then the decision is by name alone, and the machine's proxy decides which addresses are reached.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.events.record import EgressEvent
from handiwork.sandbox.egress.addresses import Address, why_never, why_refused
from handiwork.sandbox.egress.hosts import PORTS, Host, HostError, Pattern, allowing, canonical, parse
from handiwork.sandbox.egress.internet import Internet, Upstream, UpstreamError
from handiwork.sandbox.egress.relay import Streams, relay
from handiwork.sandbox.egress.request import MalformedRequestError, Request, read_request

CONNECTIONS = 128
"""Connections at the same time; further ones wait."""

BURST, RATE = 500, 20.0
"""Decisions at once, and then per second: each is logged, and the log must not grow without limit."""

_RESOLVE_TIME, _CONNECT_TIME = 20.0, 20.0
_RECHECK = 1.0  # seconds between checks that the host of an open connection is still allowed

_STILL = "the session stands still, and nothing leaves its sandbox before it goes on"


@dataclass(frozen=True, slots=True)
class Egress:
    """The hosts a sandbox may reach.

    ``allowed`` returns the user's current patterns. ``record`` logs a decision, and returns False if it cannot because
    no process runs the session: then every request is refused. ``internet`` resolves and connects.
    """

    allowed: Callable[[], Collection[str]]
    record: Callable[[EgressEvent], Awaitable[bool]]
    internet: Internet = field(default_factory=Internet)


class EgressRefusedError(Exception):
    """The sandbox's request is refused; ``status`` is the HTTP status and its words."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Pace:
    """A rate limiter: grants ``burst`` turns at once; each used turn comes back after 1 / ``rate`` seconds."""

    def __init__(self, burst: int, rate: float) -> None:
        self._ahead, self._rate = burst / rate, rate
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for a turn."""
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now - self._ahead) + 1 / self._rate
        if self._next > now:
            await asyncio.sleep(self._next - now)


class Proxy:
    """Serves one sandbox from ``listen`` to ``close``."""

    def __init__(self, egress: Egress) -> None:
        self._egress, self._internet = egress, egress.internet
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._pace = _Pace(BURST, RATE)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def listen(self, path: Path) -> None:
        """Start to serve on a new unix socket, in a folder that other users may not enter. Raises OSError."""
        self._server = await asyncio.start_unix_server(self._accept, path)
        # The sandbox's uid may differ; it gets only the socket, without the folder.
        path.chmod(0o666)

    async def close(self) -> None:
        """Close all connections and stop. Closing twice is allowed."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve((reader, writer)))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, inside: Streams) -> None:
        reader, writer = inside
        try:
            async with self._slots:
                if request := await read_request(reader):
                    await self._answer(request, inside)
        except (EgressRefusedError, MalformedRequestError) as error:
            writer.write(_response(error.status, str(error)))
            with suppress(OSError):
                await writer.drain()
        except OSError:
            pass  # one side has closed, and the other notices by its own connection's end
        finally:
            writer.close()

    async def _answer(self, request: Request, inside: Streams) -> None:
        """Decide, connect, and forward in both directions."""
        await self._pace.turn()
        upstream, addresses = await self._decide(request)
        outside = await self._connect(request, upstream, addresses)
        try:
            if not request.method:
                inside[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            elif upstream is None:
                outside[1].write(request.head(request.path))
            else:
                outside[1].write(request.head(f"http://{request.authority}{request.path}", upstream.headers))
            await self._relay_while_allowed(request, inside, outside)
        finally:
            outside[1].close()

    async def _relay_while_allowed(self, request: Request, inside: Streams, outside: Streams) -> None:
        """Forward until the server closes its side, or the session no longer allows the host."""
        relaying = asyncio.create_task(relay(inside, outside, request.length if request.method else None))
        host = canonical(request.host)
        try:
            while not (await asyncio.wait({relaying}, timeout=_RECHECK))[0]:
                patterns = [pattern for text in self._egress.allowed() for pattern in parse(text)]
                if allowing(patterns, host, request.port) is None:
                    return
            relaying.result()
        finally:
            relaying.cancel()
            await asyncio.gather(relaying, return_exceptions=True)

    async def _decide(self, request: Request) -> tuple[Upstream | None, list[Address]]:
        """Return the machine's own proxy or the addresses to connect to. Raises EgressRefusedError."""
        try:
            host = canonical(request.host)
        except HostError as error:
            raise await self._refusal(request.host, request.port, str(error)) from error
        pattern = await self._matching_pattern(host, request.port)
        if not isinstance(host, str) and pattern.host == host and why_refused(host) is not None:
            # The machine's own proxy is not asked: it is for outside hosts.
            await self._record_allowed(host, request.port, pattern)
            return None, [host]
        try:
            upstream = self._internet.upstream("http" if request.method else "https", str(host))
        except UpstreamError as error:
            raise await self._refusal(host, request.port, str(error)) from error
        addresses: list[Address] = []
        if upstream is None or not isinstance(host, str):
            addresses = await self._public_addresses(host, request.port, await self._resolve(host, request.port))
        route = f", at {addresses[0]}" if upstream is None else ", by this machine's own proxy"
        await self._record_allowed(host, request.port, pattern, route)
        return upstream, addresses

    async def _matching_pattern(self, host: Host, port: int) -> Pattern:
        allowed = self._egress.allowed()
        try:
            pattern = allowing([pattern for text in allowed for pattern in parse(text)], host, port)
        except HostError as error:
            raise await self._refusal(host, port, f"the session's allowed hosts are invalid: {error}") from error
        if pattern is not None:
            return pattern
        if not isinstance(host, str):
            reason = "addresses are not reached, only hosts by their names"
            raise await self._refusal(host, port, reason, _pattern_of(host, port))
        reason = f"not among the session's allowed hosts ({', '.join(allowed) or 'none'})"
        raise await self._refusal(host, port, reason, _pattern_of(host, port))

    async def _resolve(self, host: Host, port: int) -> list[Address]:
        if not isinstance(host, str):
            return [host]
        try:
            async with asyncio.timeout(_RESOLVE_TIME):
                addresses = await self._internet.resolve(host)
        except (OSError, UnicodeError) as error:
            reason = f"the name cannot be resolved ({str(error) or 'no answer'})"
            raise await self._refusal(host, port, reason, status="502 Bad Gateway") from error
        return [ipaddress.ip_address(address.partition("%")[0]) for address in addresses]

    async def _public_addresses(self, host: Host, port: int, addresses: list[Address]) -> list[Address]:
        reasons = {address: why_refused(address) for address in addresses}
        public = [address for address, reason in reasons.items() if reason is None]
        if not public:
            details = ", ".join(f"{address} ({reason})" for address, reason in reasons.items()) or "no address"
            remedy, reason = "", f"it is not on the internet: {details}"
            if not isinstance(host, str):
                remedy = _pattern_of(host, port)
            elif inner := [_pattern_of(address, port) for address in addresses if why_never(address) is None]:
                reason += f"; only its address can be allowed, and asked for: {' or '.join(inner)}"
            raise await self._refusal(host, port, reason, remedy)
        return public

    async def _connect(self, request: Request, upstream: Upstream | None, addresses: list[Address]) -> Streams:
        """Return a connection. Raises EgressRefusedError if no address answers."""
        problem = ""
        for host in [upstream.host] if upstream else map(str, addresses):
            port, tls = (upstream.port, upstream.tls) if upstream else (request.port, False)
            try:
                async with asyncio.timeout(_CONNECT_TIME):
                    outside = await self._internet.connect(host, port, tls)
                    if upstream is not None and not request.method:
                        await _tunnel(outside, request, upstream)
                    return outside
            except OSError as error:
                problem = str(error) or type(error).__name__
        raise EgressRefusedError("502 Bad Gateway", f"{request.authority} is allowed, but cannot be reached: {problem}")

    async def _refusal(
        self, host: Host, port: int, reason: str, remedy: str = "", status: str = "403 Forbidden"
    ) -> EgressRefusedError:
        """Record the refusal and return the error to raise; ``remedy`` is the host that the user could allow."""
        await self._record(host, port, allowed=False, reason=reason, pattern=remedy)
        hint = f"; the user can allow it while this runs: handiwork allow {remedy}" if remedy else ""
        return EgressRefusedError(status, f"{_printable(host)}:{port} is refused: {reason}{hint}")

    async def _record_allowed(self, host: Host, port: int, pattern: Pattern, route: str = "") -> None:
        reason = f"allowed by {pattern.text}{route}"
        await self._record(host, port, allowed=True, reason=reason, pattern=pattern.text)

    async def _record(self, host: Host, port: int, *, allowed: bool, reason: str, pattern: str) -> None:
        event = EgressEvent(host=_printable(host), port=port, allowed=allowed, reason=reason, pattern=pattern)
        if not await self._egress.record(event):
            raise EgressRefusedError("503 Service Unavailable", _STILL)


async def _tunnel(outside: Streams, request: Request, upstream: Upstream) -> None:
    """Let the machine's own proxy connect. Raises OSError if it does not."""
    reader, writer = outside
    try:
        line = f"CONNECT {request.authority} HTTP/1.1\r\nHost: {request.authority}\r\n"
        writer.write(line.encode() + upstream.headers + b"\r\n")
        answer = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0].decode("latin-1")
        if not answer.startswith(("HTTP/1.1 2", "HTTP/1.0 2")):
            raise OSError(f"this machine's own proxy answered {answer}")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise OSError("this machine's own proxy does not answer as one") from error
    except BaseException:
        writer.close()
        raise


def _pattern_of(host: Host, port: int) -> str:
    """Return the pattern that allows the refused host; "" if it can never be allowed."""
    if isinstance(host, str):
        return host if port in PORTS else f"{host}:{port}"
    if why_never(host) is not None:
        return ""
    return f"{host}:{port}" if host.version == 4 else f"[{host}]:{port}"


def _printable(host: Host) -> str:
    return str(host).encode("ascii", "backslashreplace").decode()[:255]


def _response(status: str, text: str) -> bytes:
    """Return an answer with the reason also in the status line: many programs show only that of a failed CONNECT."""
    code, words = status.split(" ", 1)
    body = f"Handiwork: {text}.\n".encode("ascii", "backslashreplace")
    line = f"HTTP/1.1 {code} {words} ({text})".encode("ascii", "backslashreplace").replace(b"\n", b" ")
    head = f"\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return line.replace(b"\r", b" ") + head.encode() + body
