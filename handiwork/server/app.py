"""The server as an ASGI application: its routes, its access guard, and the supervisor of its sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handiwork.log.store import Store
from handiwork.server import event_stream, static
from handiwork.server.access import AccessGuard
from handiwork.server.api import catalog, control, files, onboarding, sessions
from handiwork.server.api.catalog import RequestMetrics
from handiwork.server.openapi import document
from handiwork.server.operations import Operation, refused
from handiwork.server.supervisor import SessionSupervisor

OPERATIONS: tuple[Operation, ...] = (
    *sessions.OPERATIONS,
    *control.OPERATIONS,
    *files.OPERATIONS,
    *catalog.OPERATIONS,
    *onboarding.OPERATIONS,
)
"""All operations of the server except the WebSockets."""


def application(data: Path, token: str | None, names: frozenset[str], cookie: str = "handiwork") -> Starlette:
    """Return the server of a data folder; ``token``, ``names`` and ``cookie`` are those of ``AccessGuard``."""
    counters = RequestMetrics()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with Store.open(data) as store:
            app.state.supervisor = SessionSupervisor(store, data)
            await app.state.supervisor.start()
            try:
                yield
            finally:
                await app.state.supervisor.close()

    def supervisor() -> SessionSupervisor:
        return app.state.supervisor

    described = document(OPERATIONS)

    async def show_document(_: Request) -> Response:
        return JSONResponse(described)

    app = Starlette(
        routes=[
            *(operation.route(supervisor) for operation in OPERATIONS),
            Route("/api/openapi.json", show_document),
            *event_stream.routes(supervisor),
            *static.routes(),
        ],
        middleware=[
            Middleware(_Counted, counters=counters),
            Middleware(AccessGuard, token=token, names=names, cookie=cookie),
        ],
        exception_handlers={HTTPException: _not_found, Exception: _internal},
        lifespan=lifespan,
    )
    app.state.counters = counters
    return app


async def _not_found(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refused(error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def _internal(_: Request, error: Exception) -> Response:
    return refused(500, f"internal error: {type(error).__name__}; the server's output has the traceback")


class _Counted:
    """Middleware that counts responses by method and status."""

    def __init__(self, app: ASGIApp, counters: RequestMetrics) -> None:
        self._app, self._counters = app, counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counters.requests[scope["method"], message["status"]] += 1
            await send(message)

        await self._app(scope, receive, counted if scope["type"] == "http" else send)
