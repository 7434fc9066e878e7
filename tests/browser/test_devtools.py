"""The connection to the developer tools, against a server in place of the browser."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from handiwork.sandbox.inside.browser.cdp.devtools import Devtools, DevtoolsError


def port(server: Server) -> int:
    return next(iter(server.sockets)).getsockname()[1]


def about(connection: ServerConnection, request: Request) -> Response | None:
    if request.path == "/json/version":
        url = f"ws://{request.headers['Host']}/devtools"
        return connection.respond(HTTPStatus.OK, json.dumps({"webSocketDebuggerUrl": url}))
    return None


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        call = json.loads(message)
        if call["method"] == "hang up":
            return
        await connection.send(json.dumps({"id": call["id"], "result": call["params"]}))


async def test_large_calls_are_answered_and_a_lost_browser_ends_the_pending_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with serve(echo, "127.0.0.1", 0, process_request=about, max_size=None) as server:
        devtools = await Devtools.connect(port(server))
        large = {"text": "x" * 5_000_000}
        assert await asyncio.gather(*(devtools.call("echo", large) for _ in range(3))) == [large] * 3
        for _ in range(2):
            with pytest.raises(DevtoolsError):
                await devtools.call("hang up", {})
        await devtools.close()


async def test_a_browser_that_refuses_is_an_os_error():
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return about(connection, request) or connection.respond(HTTPStatus.FORBIDDEN, "")

    async with serve(echo, "127.0.0.1", 0, process_request=refuse) as server:
        with pytest.raises(OSError, match="403"):
            await Devtools.connect(port(server))
