"""Forwards a request for a preview to the server in the sandbox, whose answers are not trusted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import h11
from starlette.types import Receive, Scope, Send

from handiwork.errors import SandboxError
from handiwork.tasks import run_until_one_ends

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"upgrade"}
)
_REPLACED = frozenset(
    {
        b"content-security-policy",
        b"content-security-policy-report-only",
        b"cross-origin-resource-policy",
        b"referrer-policy",
        b"strict-transport-security",
        b"transfer-encoding",
        b"x-dns-prefetch-control",
        b"x-frame-options",
    }
)
"""The headers of answers that the proxy sets itself, or that would concern other servers of this machine."""
_COOKIE_SCOPE = re.compile(rb";\s*(domain=|samesite=|secure|partitioned)[^;]*", re.IGNORECASE)
_FRAMED_COOKIE = b"; SameSite=None; Secure; Partitioned"
"""Without these attributes browsers drop a framed page's cookies; other sites cannot make requests with them."""
_SANDBOX = "allow-scripts allow-same-origin allow-forms allow-modals allow-downloads"


class PreviewConnection(Protocol):
    """A connection to the server in the sandbox."""

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        ...


@dataclass(frozen=True)
class PreviewTarget:
    """The server's ``port`` in the sandbox, the ``origin`` that its preview has, and that of the ``page`` around it."""

    port: int
    origin: str
    page: str

    @property
    def own_origin(self) -> bytes:
        """The origin that the server takes itself to have."""
        return f"http://localhost:{self.port}".encode()


async def forward(
    scope: Scope, receive: Receive, send: Send, connection: PreviewConnection, target: PreviewTarget
) -> None:
    """Answer an HTTP request with the server's answer. Raises SandboxError if there is none."""
    client = h11.Connection(h11.CLIENT)

    async def write(event: h11.Event) -> None:
        if data := client.send(event):
            await connection.write(data)

    path = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    try:
        request_target = path + (b"?" + query if query else b"")
        await write(h11.Request(method=scope["method"], target=request_target, headers=_request_headers(scope, target)))
        async for data in _body(receive):
            await write(h11.Data(data=data))
        await write(h11.EndOfMessage())
        await run_until_one_ends(_answer(client, connection, send, target), _wait_for_disconnect(receive))
    except h11.ProtocolError as error:
        raise SandboxError(f"the server on port {target.port} does not speak HTTP: {error}") from error


async def _answer(client: h11.Connection, connection: PreviewConnection, send: Send, target: PreviewTarget) -> None:
    while True:
        match client.next_event():
            case h11.Response(status_code=status, headers=headers):
                answer_headers = _answer_headers(headers.raw_items(), target)
                await send({"type": "http.response.start", "status": status, "headers": answer_headers})
            case h11.Data(data=data):
                await send({"type": "http.response.body", "body": bytes(data), "more_body": True})
            case h11.EndOfMessage():
                await send({"type": "http.response.body", "body": b""})
                return
            case h11.InformationalResponse():
                pass
            case h11.NEED_DATA:
                client.receive_data(await connection.read())
            case event:
                raise h11.RemoteProtocolError(f"unexpected {event!r}")


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while (message := await receive())["type"] == "http.request":
        if data := message.get("body"):
            yield data
        if not message.get("more_body"):
            return


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _request_headers(scope: Scope, target: PreviewTarget) -> list[tuple[bytes, bytes]]:
    """Return the request's headers as if it had been made in the sandbox: development servers check host and origin."""
    headers = [(b"host", target.own_origin.removeprefix(b"http://")), (b"connection", b"close")]
    for name, value in scope["headers"]:
        if name in (b"origin", b"referer"):
            headers.append((name, value.replace(target.origin.encode(), target.own_origin, 1)))
        elif name != b"host" and name not in _HOP_BY_HOP:
            headers.append((name, value))
    return headers


def _answer_headers(headers: list[tuple[bytes, bytes]], target: PreviewTarget) -> list[tuple[bytes, bytes]]:
    """Return the headers for the browser, with those that confine the preview."""
    answer: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        match name.lower():
            case key if key in _HOP_BY_HOP or key in _REPLACED:
                pass
            case b"location":
                answer.append((name, value.removeprefix(target.own_origin) or b"/"))
            case b"set-cookie":
                answer.append((name, _COOKIE_SCOPE.sub(b"", value) + _FRAMED_COOKIE))
            case _:
                answer.append((name, value))
    return [
        *answer,
        (b"content-security-policy", policy(target.origin, target.page).encode()),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"referrer-policy", b"same-origin"),
        (b"x-dns-prefetch-control", b"off"),
    ]


def policy(origin: str, page: str) -> str:
    """Return the policy of a preview: it may load from and send to itself alone, and only ``page`` may frame it.

    The sandbox may have no network, so the page must not reach any from the user's browser either.
    """
    sources = f"'self' {origin} {origin.replace('http', 'ws', 1)}" if origin else "'self'"
    return (
        f"default-src {sources} data: blob: 'unsafe-inline' 'unsafe-eval'; base-uri 'self'; form-action 'self'; "
        f"frame-ancestors {page}; webrtc 'block'; sandbox {_SANDBOX}"
    )
