"""The requests for byte streams: the user's terminals, and connections to servers in the sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ..actions import RequestError
from ..asgi import Receive, Scope, Send, chunks, json_line, json_object, read_body, respond, run_while_connected
from ..children import Children
from ..errors import ActionError
from ..forward import Forwarder
from .connection import connect, listening_ports, parse_port
from .streams import Stream, Streams
from .terminal import UserTerminal, parse_size


class StreamRoutes:
    """The routes by method and first part of the path. With ``on_host`` the sandbox shares the machine's network."""

    def __init__(
        self,
        workspace: str,
        environment: Mapping[str, str],
        children: Children,
        forwarder: Forwarder | None,
        *,
        bashrc: bool,
        on_host: bool,
    ) -> None:
        self._workspace, self._environment, self._children = workspace, environment, children
        self._bashrc, self._on_host = bashrc, on_host
        # The platform's own way to its proxy is not a server of the sandbox.
        self._hidden = () if forwarder is None else (forwarder.port,)
        self._streams = Streams()
        self.routes: dict[tuple[str, str], Callable[[Scope, Receive, Send], Awaitable[None]]] = {
            ("POST", "terminal"): self._open_terminal,
            ("POST", "resize"): self._resize_terminal,
            ("POST", "connection"): self._open_connection,
            ("GET", "ports"): self._get_ports,
            ("PUT", "stream"): self._write_stream,
        }

    def close(self) -> None:
        """Close all streams."""
        self._streams.close()

    async def _open_terminal(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = parse_size(json_object(await read_body(receive)))
        self._streams.check()
        terminal = UserTerminal(self._workspace, self._environment, self._children, size, bashrc=self._bashrc)
        await self._run_stream(terminal, receive, send)

    async def _resize_terminal(self, scope: Scope, receive: Receive, send: Send) -> None:
        terminal = self._streams.find(scope["path"].removeprefix("/resize/"))
        if not isinstance(terminal, UserTerminal):
            raise RequestError("That stream is no terminal.")
        terminal.resize(parse_size(json_object(await read_body(receive))))
        await respond(send, 200, {"resized": True})

    async def _open_connection(self, scope: Scope, receive: Receive, send: Send) -> None:
        port = parse_port(json_object(await read_body(receive)))
        self._streams.check()
        if port not in self._ports():
            raise ActionError("not_found", f"No server listens on port {port} in the sandbox.")
        await self._run_stream(await connect(port), receive, send)

    async def _run_stream(self, stream: Stream, receive: Receive, send: Send) -> None:
        """Send a line of JSON with the stream's handle, and then its bytes."""
        chunk = chunks(send)

        async def begin(handle: str) -> None:
            await chunk(json_line({"stream": handle}), False)

        await run_while_connected(self._streams.run(stream, begin, lambda data: chunk(data, False)), receive, chunk)

    async def _write_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.find(scope["path"].removeprefix("/stream/")).write(await read_body(receive))
        await respond(send, 200, {"written": True})

    async def _get_ports(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 200, {"ports": self._ports()})

    def _ports(self) -> list[int]:
        return listening_ports(self._hidden, own=self._on_host)
