"""The server as an ASGI application: its routes, its access guard, and the supervisor of its sessions."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handiwork.log.store import Store
from handiwork.server import event_stream, terminal
from handiwork.server.access import AccessGuard
from handiwork.server.api import (
    apply,
    catalog,
    control,
    evaluation,
    files,
    onboarding,
    permissions,
    places,
    pull_request,
    sessions,
)
from handiwork.server.api.catalog import RequestMetrics
from handiwork.server.api.evaluation import FollowedRun
from handiwork.server.openapi import document
from handiwork.server.operations import Operation, refusal
from handiwork.server.previews import hosts
from handiwork.server.previews.hosts import PreviewHosts, Previews
from handiwork.server.supervisor import SessionSupervisor

OPERATIONS: tuple[Operation, ...] = (
    *sessions.OPERATIONS,
    *control.OPERATIONS,
    *permissions.OPERATIONS,
    *places.OPERATIONS,
    *files.OPERATIONS,
    *apply.OPERATIONS,
    *pull_request.OPERATIONS,
    *hosts.OPERATIONS,
    *catalog.OPERATIONS,
    *onboarding.OPERATIONS,
    *evaluation.OPERATIONS,
)
"""All operations of the server except the WebSockets."""


FOLDER = Path(__file__).parent / "app"

NOT_BUILT = "The web app is not built: run `make setup`. The API is described by /api/openapi.json.\n"

# The terminal and React set inline styles; scripts come only from the built files.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOREVER = "private, max-age=31536000, immutable"


def application(
    data: Path, token: str | None, names: frozenset[str], cookie: str = "handiwork", run: FollowedRun | None = None
) -> Starlette:
    """Return the server of a data folder; ``token``, ``names`` and ``cookie`` are those of ``AccessGuard``.

    With a ``run`` of an evaluation, which keeps its store in the data folder, it is the server of the run's rollouts,
    which can only be read.
    """
    counters, opened_previews = RequestMetrics(), Previews()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with Store.open(data) if run is None else run.followed(data) as store:
            app.state.supervisor = SessionSupervisor(store, data)
            await app.state.supervisor.start()
            try:
                yield
            finally:
                await app.state.supervisor.close()

    def supervisor() -> SessionSupervisor:
        return app.state.supervisor

    openapi = document(OPERATIONS)
    operations = [one for one in OPERATIONS if run is None or one.method == "GET"]
    special: list[BaseRoute] = [terminal.route(supervisor)] if run is None else [Route("/", _to_the_run)]

    async def show_document(_: Request) -> Response:
        return JSONResponse(openapi)

    app = Starlette(
        routes=[
            *(operation.route(supervisor) for operation in operations),
            Route("/api/openapi.json", show_document),
            *event_stream.routes(supervisor),
            *special,
            web_app(),
        ],
        middleware=[
            Middleware(_RequestCounter, counters=counters),
            Middleware(PreviewHosts, previews=opened_previews, supervisor=supervisor),
            Middleware(AccessGuard, token=token, names=names, cookie=cookie),
        ],
        exception_handlers={HTTPException: _not_found, Exception: _internal},
        lifespan=lifespan,
    )
    app.state.counters = counters
    app.state.previews = opened_previews
    app.state.run = run
    return app


def web_app(folder: Path = FOLDER) -> Route:
    """Return the route of the web app in ``folder``, which ``scripts/web.sh`` builds; it must come after all others.

    Every page address returns the same document.
    """
    # Serve only files that exist at the start, so that no path can lead outside the folder. They are read into memory:
    # reading one hops between threads four times, and each hop waits while a long session's state is computed.
    files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    async def show(request: Request) -> Response:
        path = str(request.path_params["path"])
        if path not in files:
            if path.partition("/")[0] in ("api", "assets"):
                raise HTTPException(404, "no such path")
            path = "index.html"
        if path not in files:
            return PlainTextResponse(NOT_BUILT)
        # A build renames each file in assets/ whose content changes.
        caching = _FOREVER if path.startswith("assets/") else "no-cache"
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        port = f":{request.url.port}" if request.url.port else ""
        frames = f"frame-src {request.url.scheme}://*.localhost{port}"
        headers = {"content-security-policy": f"{POLICY}; {frames}", "cache-control": caching}
        return Response(files[path], media_type=kind, headers=headers)

    return Route("/{path:path}", show)


async def _to_the_run(_: Request) -> Response:
    return RedirectResponse("/eval")


async def _not_found(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refusal(error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def _internal(_: Request, error: Exception) -> Response:
    return refusal(500, f"internal error: {type(error).__name__}; the server's output has the traceback")


class _RequestCounter:
    """Middleware that counts responses by method and status."""

    def __init__(self, app: ASGIApp, counters: RequestMetrics) -> None:
        self._app, self._counters = app, counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counters.requests[scope["method"], message["status"]] += 1
            await send(message)

        await self._app(scope, receive, count_and_send if scope["type"] == "http" else send)
