"""MCP servers behind an address: the egress decides whether they are reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from mcp.server import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

from handiwork.events.observation import ErrorObservation, MCPCallObservation
from handiwork.events.record import EgressEvent
from tests.session.bench import finish
from tests.session.mcp.bench import Sessions, mcp_call


@dataclass
class Remote:
    """A server on the loopback; ``headers`` are those of its requests."""

    port: int = 0
    headers: list[dict[bytes, bytes]] = field(default_factory=list)

    def settings(self) -> dict[str, object]:
        headers = {"Authorization": "Bearer ${MY_TOKEN}"}
        return {"remote": {"url": f"http://127.0.0.1:{self.port}/mcp", "headers": headers}}


@pytest.fixture
async def remote(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Remote]:
    monkeypatch.setenv("MY_TOKEN", "an0ther-secret-value")
    server, remote = MCPServer("remote"), Remote()

    @server.tool()
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    def watched(app: ASGIApp) -> ASGIApp:
        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                remote.headers.append(dict(scope["headers"]))
            await app(scope, receive, send)

        return call

    config = uvicorn.Config(watched(server.streamable_http_app()), port=0, log_level="error", lifespan="on")
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve())
    while not running.started:
        await asyncio.sleep(0.01)
    remote.port = running.servers[0].sockets[0].getsockname()[1]
    yield remote
    running.should_exit = running.force_exit = True
    await task


async def test_an_allowed_address_is_reached_with_its_headers(sessions: Sessions, remote: Remote) -> None:
    replies = [mcp_call("remote", "double", number=21), finish()]
    settings = {"allow_net": (f"127.0.0.1:{remote.port}",), "secrets": ("MY_TOKEN",)}
    await sessions.run(remote.settings(), replies, **settings)
    assert sessions.all(MCPCallObservation)[0].content == "42"
    assert {headers[b"authorization"] for headers in remote.headers} == {b"Bearer an0ther-secret-value"}
    assert {event.allowed for event in sessions.all(EgressEvent)} == {True}


async def test_an_address_that_is_not_allowed_is_refused_and_said(sessions: Sessions, remote: Remote) -> None:
    await sessions.run(remote.settings(), [mcp_call("remote", "double", number=1), finish()], secrets=("MY_TOKEN",))
    event = sessions.changes()[0]
    assert event.state == "failed"
    assert f"127.0.0.1:{remote.port} is refused" in event.content
    assert "is refused" in sessions.all(ErrorObservation)[0].content
    assert not sessions.all(EgressEvent)[0].allowed
    assert remote.headers == []


async def test_an_address_where_nobody_listens_is_said(sessions: Sessions) -> None:
    servers = {"nobody": {"url": "http://127.0.0.1:9/mcp"}}
    await sessions.run(servers, [finish()], allow_net=("127.0.0.1:9",))
    event = sessions.changes()[0]
    assert event.state == "failed"
    assert event.content
