"""Connects a WebSocket of a previewed page with its server in the sandbox; development servers reload pages so."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, ProtocolError
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Origin, Subprotocol
from websockets.uri import parse_uri

from handiwork.errors import SandboxError
from handiwork.server.previews.proxy import PreviewConnection, PreviewTarget
from handiwork.tasks import run_until_one_ends

MESSAGE_LIMIT = 16 << 20
"""Bytes of a message of the server."""


async def forward_websocket(
    scope: Scope, receive: Receive, send: Send, connection: PreviewConnection, target: PreviewTarget
) -> None:
    """Forward messages until one side closes. Raises SandboxError if the server accepts no WebSocket."""
    client = _Client(scope, connection, target)
    await receive()  # websocket.connect
    try:
        await client.open()
        await send({"type": "websocket.accept", "subprotocol": client.subprotocol})
        await run_until_one_ends(_forward_to_page(client, send), _forward_to_server(client, receive))
    except (InvalidHandshake, ProtocolError) as error:
        raise SandboxError(f"the server on port {target.port} accepts no such WebSocket: {error}") from error


class _Client:
    """The client's end of a connection with the server."""

    def __init__(self, scope: Scope, connection: PreviewConnection, target: PreviewTarget) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        own_origin = target.own_origin.decode()
        self._connection = connection
        self._cookies = [value for name, value in scope["headers"] if name == b"cookie"]
        self.protocol = ClientProtocol(
            parse_uri(own_origin.replace("http", "ws", 1) + (path + query).decode("latin-1")),
            origin=Origin(own_origin),
            subprotocols=[Subprotocol(name) for name in scope["subprotocols"]] or None,
            max_size=MESSAGE_LIMIT,
        )

    @property
    def subprotocol(self) -> str | None:
        """The protocol that the server chose."""
        return self.protocol.subprotocol

    async def open(self) -> None:
        """Make the handshake. Raises InvalidHandshake, SandboxError."""
        request = self.protocol.connect()
        for cookie in self._cookies:
            request.headers["Cookie"] = cookie.decode("latin-1")
        self.protocol.send_request(request)
        await self.flush()
        while self.protocol.state is State.CONNECTING:
            if self.protocol.handshake_exc is not None:
                raise self.protocol.handshake_exc
            await self.receive()

    async def flush(self) -> None:
        """Send the protocol's pending data."""
        if data := b"".join(self.protocol.data_to_send()):
            await self._connection.write(data)

    async def receive(self) -> bool:
        """Take the server's next bytes, and answer pings; return False at the end."""
        data = await self._connection.read()
        if data:
            self.protocol.receive_data(data)
        else:
            self.protocol.receive_eof()
        await self.flush()
        return bool(data)


async def _forward_to_page(client: _Client, send: Send) -> None:
    message, is_text, more = bytearray(), True, True
    while True:
        for event in client.protocol.events_received():
            if not isinstance(event, Frame):
                continue  # the answer to the handshake
            if event.opcode is Opcode.CLOSE:
                code = client.protocol.close_code
                await send({"type": "websocket.close", "code": 1000 if code in (None, 1005, 1006) else code})
                return
            if event.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                continue
            if event.opcode is not Opcode.CONT:
                is_text = event.opcode is Opcode.TEXT
            message += event.data
            if event.fin:
                body = {"text": message.decode("utf-8", "replace")} if is_text else {"bytes": bytes(message)}
                await send({"type": "websocket.send", **body})
                message.clear()
        if not more:
            await send({"type": "websocket.close", "code": 1011})
            return
        more = await client.receive()


async def _forward_to_server(client: _Client, receive: Receive) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        if (text := message.get("text")) is not None:
            client.protocol.send_text(text.encode())
        else:
            client.protocol.send_binary(message["bytes"])
        await client.flush()
    if client.protocol.state is State.OPEN:
        client.protocol.send_close()
        await client.flush()
