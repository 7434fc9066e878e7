"""Previews have origins that are foreign to the server's own: http://preview-LABEL.localhost:PORT/.

Browsers resolve names below localhost to this machine without asking anybody, and share neither cookies nor storage
between them. The label is a secret of the user's: only a page that may use the API gets one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from handiwork.errors import HandiworkError, SandboxError
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.previews.proxy import PreviewTarget, forward, policy
from handiwork.server.previews.websocket import forward_websocket
from handiwork.server.schemas.sessions import Shape
from handiwork.server.supervisor import SessionSupervisor

_HOST = re.compile(r"preview-([0-9a-z]+)\.localhost(:[0-9]+)?", re.IGNORECASE)
_LABEL_BYTES = 16
MOST = 200
"""The number of previews that are remembered; the oldest are forgotten."""


Port = Annotated[int, Field(ge=1, le=65535)]


class Ports(Shape):
    """The TCP ports on which programs in the sandbox listen, ascending."""

    ports: list[Port]


class NewPreview(Shape):
    """A port of the sandbox to show."""

    port: Port


class OpenedPreview(Shape):
    """The address of a preview, whose host names it; it holds as long as the server and the sandbox run."""

    url: str


@dataclass(frozen=True)
class PreviewedServer:
    """The server on ``port`` in a session's sandbox; only pages of the origin ``page`` may frame it."""

    session: str
    port: int
    page: str


class Previews:
    """The previews by their labels."""

    def __init__(self) -> None:
        self._labels: dict[PreviewedServer, str] = {}

    def open(self, preview: PreviewedServer) -> str:
        """Return the label of a preview."""
        label = self._labels.setdefault(preview, secrets.token_hex(_LABEL_BYTES))
        while len(self._labels) > MOST:
            del self._labels[next(iter(self._labels))]
        return label

    def find(self, label: str) -> PreviewedServer | None:
        """Return the preview with a label."""
        return next((one for one, its in self._labels.items() if secrets.compare_digest(its, label)), None)


class PreviewHosts:
    """Middleware that answers for the hosts of previews, from which no request reaches ``app``."""

    def __init__(self, app: ASGIApp, previews: Previews, supervisor: Callable[[], SessionSupervisor]) -> None:
        self._app, self._previews, self._supervisor = app, previews, supervisor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        match = _HOST.fullmatch(Headers(scope=scope).get("host", "")) if scope["type"] != "lifespan" else None
        if match is None:
            await self._app(scope, receive, send)
            return
        preview = self._previews.find(match[1].lower())
        page = "'none'" if preview is None else preview.page
        try:
            if preview is None:
                raise RequestRefusedError(404, "There is no such preview: open it again in the session's page.")
            if _is_foreign(scope):
                raise RequestRefusedError(403, "Only the preview itself may use this server.")
            await self._serve(preview, scope, receive, send)
        except HandiworkError as error:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1011})
            else:
                status = 502 if isinstance(error, SandboxError) else error.status
                await _problem(status, str(error), page)(scope, receive, send)

    async def _serve(self, preview: PreviewedServer, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the server. Raises HandiworkError."""
        supervisor = self._supervisor()
        target = PreviewTarget(preview.port, f"http://{Headers(scope=scope)['host']}", preview.page)
        log = await supervisor.store.log(preview.session)
        async with supervisor.attached(log) as session:
            sandbox = await session.sandbox()
            async with sandbox.connect(preview.port) as connection:
                if scope["type"] == "websocket":
                    await forward_websocket(scope, receive, send, connection, target)
                else:
                    await forward(scope, receive, send, connection, target)


def _is_foreign(scope: Scope) -> bool:
    """Return whether a page of another site asks for more than to show the preview in a frame."""
    headers = Headers(scope=scope)
    if scope["type"] == "websocket":
        return headers.get("origin") != f"http://{headers['host']}"
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    frames = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "iframe"
    return scope["method"] != "GET" or not frames


def _problem(status: int, text: str, page: str) -> Response:
    headers = {"content-security-policy": policy("", page), "cache-control": "no-store"}
    return Response(text, status, headers, media_type="text/plain")


async def list_ports(call: OperationCall[None, None]) -> Ports:
    """List the ports on which programs in the session's sandbox listen."""
    async with call.supervisor.attached(await call.log()) as session:
        return Ports(ports=await (await session.sandbox()).ports())


async def open_preview(call: OperationCall[None, NewPreview]) -> OpenedPreview:
    """Return an address that shows the server on a port of the sandbox, in a frame of the page that asks for it."""
    log, port = await call.log(), call.body.port
    async with call.supervisor.attached(log) as session:
        if port not in await (await session.sandbox()).ports():
            raise RequestRefusedError(409, f"no server listens on port {port} in the sandbox")
    previews: Previews = call.request.app.state.previews
    page = urlsplit(str(call.request.base_url))
    label = previews.open(PreviewedServer(log.id, port, f"{page.scheme}://{page.netloc}"))
    return OpenedPreview(url=f"{page.scheme}://preview-{label}.localhost{f':{page.port}' if page.port else ''}/")


_AT = "/api/sessions/{session}"
OPERATIONS = (
    Operation("GET", f"{_AT}/ports", list_ports, Ports),
    Operation("POST", f"{_AT}/previews", open_preview, OpenedPreview, body=NewPreview, status=201),
)
