"""MCP servers behind an address: the egress decides whether they are reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from handiwork.events.observation import ErrorObservation, MCPCallObservation, MCPToolsObservation
from handiwork.events.record import EgressEvent
from handiwork.session.mcp import transports
from tests.session.bench import call, finish
from tests.session.mcp.bench import Sessions, mcp_call

pytestmark = pytest.mark.slow


@dataclass
class Remote:
    """A server on the loopback; ``headers`` and ``queries`` are those of its requests."""

    port: int = 0
    headers: list[dict[bytes, bytes]] = field(default_factory=list)
    queries: set[bytes] = field(default_factory=set)

    def settings(self) -> dict[str, object]:
        headers = {"Authorization": "Bearer ${MY_TOKEN}"}
        return {"remote": {"url": f"http://127.0.0.1:{self.port}/mcp?key=${{MY_TOKEN}}", "headers": headers}}

    async def lists(self, count: int) -> None:
        """Wait until the tools have been listed ``count`` times."""
        async with asyncio.timeout(20):
            while [headers.get(b"mcp-method") for headers in self.headers].count(b"tools/list") < count:
                await asyncio.sleep(0.01)


@pytest.fixture
async def remote(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Remote]:
    monkeypatch.setenv("MY_TOKEN", "an0ther-secret&value")
    server, remote = MCPServer("remote"), Remote()

    @server.tool()
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @server.tool()
    async def learn(context: Context) -> str:
        """Learn to halve; the answer comes after the client has heard of it: they travel on streams of their own."""
        await remote.lists(2)  # the second one follows the subscription

        @server.tool()
        def halve(number: int) -> float:
            """Halve a number."""
            return number / 2

        await context.notify_tools_changed()
        await remote.lists(3)
        return f"learnt {halve.__name__}"

    def watched(app: ASGIApp) -> ASGIApp:
        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                remote.headers.append(dict(scope["headers"]))
                remote.queries.add(scope["query_string"])
            await app(scope, receive, send)

        return call

    async with listening(watched(server.streamable_http_app()), lifespan="on") as remote.port:
        yield remote


@asynccontextmanager
async def listening(app: ASGIApp, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[int]:
    """Serve the application on the loopback; gives the port."""
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan=lifespan))
    task = asyncio.create_task(running.serve())
    while not running.started:
        await asyncio.sleep(0.01)
    yield running.servers[0].sockets[0].getsockname()[1]
    running.should_exit = running.force_exit = True
    await task


async def test_an_allowed_address_is_reached_with_its_secrets(sessions: Sessions, remote: Remote) -> None:
    replies = [mcp_call("remote", "double", number=21), finish()]
    settings = {"allow_net": (f"127.0.0.1:{remote.port}",), "secrets": ("MY_TOKEN",)}
    await sessions.run(remote.settings(), replies, **settings)
    assert sessions.all(MCPCallObservation)[0].content == "42"
    assert {headers[b"authorization"] for headers in remote.headers} == {b"Bearer an0ther-secret&value"}
    assert remote.queries == {b"key=an0ther-secret%26value"}
    assert {event.allowed for event in sessions.all(EgressEvent)} == {True}


async def test_an_address_that_is_not_allowed_is_refused_and_said(sessions: Sessions, remote: Remote) -> None:
    await sessions.run(remote.settings(), [mcp_call("remote", "double", number=1), finish()], secrets=("MY_TOKEN",))
    event = sessions.changes()[0]
    assert event.state == "failed"
    assert f"127.0.0.1:{remote.port} is refused" in event.content
    assert "is refused" in sessions.all(ErrorObservation)[0].content
    assert not sessions.all(EgressEvent)[0].allowed
    assert remote.headers == []


async def test_a_server_of_the_newest_protocol_tells_of_new_tools(sessions: Sessions, remote: Remote) -> None:
    replies = [mcp_call("remote", "learn"), call("mcp_tools", server="remote", tools=["halve"]), finish()]
    settings = {"allow_net": (f"127.0.0.1:{remote.port}",), "secrets": ("MY_TOKEN",)}
    await sessions.run(remote.settings(), replies, **settings)
    assert [len(event.tools) for event in sessions.changes()] == [2, 3]
    assert sessions.all(MCPToolsObservation)[0].content.startswith("halve: Halve a number.")


class SessionServer:
    """A server that names its sessions and forgets a session after one call of its tool, as after a restart."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self._known: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        message = await request.json() if request.method == "POST" else {}
        session, headers = request.headers.get("mcp-session-id", ""), {}
        results = {"tools/list": {"tools": [{"name": "double", "inputSchema": {"type": "object"}}]}}
        if message.get("method") == "initialize":
            headers["Mcp-Session-Id"] = session = f"session-{len(self.sessions)}"
            self.sessions.append(session)
            self._known.add(session)
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}
            results["initialize"] = {"protocolVersion": "2025-06-18", **about}
        if message and session not in self._known:
            answer = Response(status_code=404)
        elif message.get("method") == "tools/call":
            self._known.clear()
            answer = self._result(message, {"content": [{"type": "text", "text": session}]})
        elif message.get("method") in results:
            answer = self._result(message, results[message["method"]], headers)
        else:
            answer = Response(status_code=202 if message else 405)
        await answer(scope, receive, send)

    def _result(self, message: Any, result: Any, headers: Any = None) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


async def test_a_server_that_has_ended_its_session_is_asked_for_a_new_one(sessions: Sessions) -> None:
    server = SessionServer()
    async with listening(server) as port:
        servers = {"old": {"url": f"http://127.0.0.1:{port}/mcp"}}
        replies = [*(mcp_call("old", "double", number=n) for n in range(3)), finish()]
        await sessions.run(servers, replies, allow_net=(f"127.0.0.1:{port}",))
    assert [call.content for call in sessions.all(MCPCallObservation)] == ["session-0", "session-1"]
    (lost,) = sessions.all(ErrorObservation)
    assert "it has ended its session" in lost.content
    assert "the next call starts it again" in lost.content


async def test_a_server_may_be_silent_for_as_long_as_its_calls_may_take(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "QUIET", 0.3)
    server = MCPServer("slow")

    @server.tool()
    async def wait() -> str:
        """Take longer than a server may be silent otherwise."""
        await asyncio.sleep(1)
        return "done"

    async with listening(server.streamable_http_app(json_response=True), lifespan="on") as port:
        servers = {"slow": {"url": f"http://127.0.0.1:{port}/mcp", "timeout": 20}}
        await sessions.run(servers, [mcp_call("slow", "wait"), finish()], allow_net=(f"127.0.0.1:{port}",))
    assert [call.content for call in sessions.all(MCPCallObservation)] == ["done"]


async def test_an_address_where_nobody_listens_is_said(sessions: Sessions) -> None:
    servers = {"nobody": {"url": "http://127.0.0.1:9/mcp"}}
    await sessions.run(servers, [finish()], allow_net=("127.0.0.1:9",))
    event = sessions.changes()[0]
    assert event.state == "failed"
    assert event.content


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_another_token_says_so(sessions: Sessions, status: int) -> None:
    async with listening(Response(status_code=status)) as port:
        servers = {"locked": {"url": f"http://127.0.0.1:{port}/mcp"}}
        await sessions.run(servers, [finish()], allow_net=(f"127.0.0.1:{port}",))
    event = sessions.changes()[0]
    assert event.state == "failed"
    assert f"it answers {status}" in event.content
    assert "its headers need a valid token" in event.content
