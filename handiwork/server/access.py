"""Access to the server: checks a request's host, origin and token."""

from __future__ import annotations

import hmac
import html
import ipaddress
import secrets
import socket
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handiwork.server.operations import refusal

OPEN = frozenset({"/health"})
"""Paths that need no token."""

UNAUTHENTICATED = (
    "this needs the server's token: open the link that `handiwork serve` printed, or send `Authorization: Bearer TOKEN`"
)
_LOGIN_PAGE = """<!doctype html>
<html lang="en">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Handiwork</title>
<body style="max-width: 40em; margin: 15vh auto; padding: 0 1em; font: 16px/1.5 system-ui, sans-serif">
<h1 style="font-size: 1.3em">Open the link with the token</h1>
<p>This page needs the server's token. Open the link that <code>handiwork serve</code> printed in its terminal: it logs
this browser in.</p>
"""
_SAFETY = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}


class AccessGuard:
    """Middleware that passes a request to ``app`` or refuses it: 403 for a foreign host or origin, 401 without a token.

    ``names`` are the host names that the server accepts in addition to addresses; with ``token`` None it needs no
    token. The link with ``?token=`` sets a cookie named ``cookie``.
    """

    def __init__(self, app: ASGIApp, token: str | None, names: frozenset[str], cookie: str) -> None:
        self._app, self._token, self._names, self._cookie = app, token, names, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = list(message.get("headers", []))
                present = {name.lower() for name, _ in headers}
                message["headers"] = [*headers, *((k, v) for k, v in _SAFETY.items() if k not in present)]
            await send(message)

        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, send_safely)
        else:
            await self._app(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_own_host(host):
            return refusal(403, "this server does not accept that host name: use its address, or localhost")
        origins = headers.getlist("origin")
        if any(not _same_origin(origin, host) for origin in origins):
            return refusal(403, "pages of other origins may not use this server")
        # Browsers send no origin with a picture's request or a link, but they tell from which site it is.
        site = headers.get("sec-fetch-site", "none")
        if scope["path"].startswith("/api/") and site not in ("same-origin", "none"):
            return refusal(403, "pages of other origins may not use this server")
        if self._token is None or scope["path"] in OPEN:
            return None
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["path"].startswith("/api/"):
            query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            if any(self._is_token(value) for value in query.pop("token", [])):
                return self._welcome(str(scope["path"]), query, headers.get("sec-fetch-site") == "cross-site")
        if self._is_authenticated(headers):
            return None
        if "text/html" in headers.get("accept", "") and not scope["path"].startswith("/api/"):
            return HTMLResponse(_LOGIN_PAGE, 401)
        return refusal(401, UNAUTHENTICATED)

    def _is_own_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)  # unlike a name, an address cannot be rebound to another machine
        except ValueError:
            return False
        return True

    def _is_authenticated(self, headers: Headers) -> bool:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._is_token(credentials.strip())
        # Not http.cookies: it drops what follows the first cookie it cannot parse, and other servers of this host set
        # cookies that the browser sends here.
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie)
        return cookie is not None and _equal(cookie, self._login)

    def _is_token(self, value: str) -> bool:
        return self._token is not None and _equal(value, self._token)

    @property
    def _login(self) -> str:
        """The cookie's value: not the token, since browsers send the cookie to other servers of this machine too."""
        return hmac.new((self._token or "").encode(), self._cookie.encode(), "sha256").hexdigest()

    def _welcome(self, path: str, query: dict[str, list[str]], cross_site: bool) -> Response:
        """Return a response that forwards to the page, with a cookie instead of the token in the address.

        After a ``cross_site`` link (in a mail or a file), browsers withhold the cookie from a redirect's target,
        but send it to the target of our own forwarding page.
        """
        parameters = urlencode(query, doseq=True)
        # Only a path: "//host" would lead to another server.
        target = "/" + path.lstrip("/\\") + (f"?{parameters}" if parameters else "")
        answer = HTMLResponse(forwarding_page(target)) if cross_site else RedirectResponse(target, 303)
        answer.set_cookie(self._cookie, self._login, httponly=True, samesite="strict", path="/", max_age=365 * 86400)
        return answer


def forwarding_page(target: str) -> str:
    """Return an HTML page that forwards to an address."""
    return f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(target)}"><title>Handiwork</title>'


def _equal(value: str, secret: str) -> bool:
    return secrets.compare_digest(value.encode(errors="replace"), secret.encode())


def names_of(host: str) -> frozenset[str]:
    """Return the host names that a server bound to ``host`` accepts."""
    names = {"localhost", host.lower()}
    if not is_loopback(host):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() and not parts.path.strip("/")
