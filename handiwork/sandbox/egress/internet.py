"""Name resolution and connections of this machine, and the proxy that it has itself, if its environment names one."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from handiwork.sandbox.egress.relay import Streams

_PORTS = {"http": 80, "https": 443}


class UpstreamError(Exception):
    """The proxy that the environment names cannot be used; the message says how to fix it."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """An HTTP proxy, with or without TLS; ``authorization`` is the value of its header, or ""."""

    host: str
    port: int
    tls: bool
    authorization: str

    @property
    def headers(self) -> bytes:
        """The additional header lines of each request to it."""
        return f"Proxy-Authorization: {self.authorization}\r\n".encode() if self.authorization else b""


class Internet:
    """Resolves names and connects; ``environment`` may name this machine's own proxy."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment

    def upstream(self, scheme: Literal["http", "https"], host: str) -> Upstream | None:
        """Return the machine's own proxy for a host, None if it has none. Raises UpstreamError."""
        return _upstream(scheme, host, self._environment)

    async def resolve(self, host: str) -> list[str]:
        """Return the addresses of a name, in the order to try them. Raises OSError."""
        entries = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))

    async def connect(self, host: str, port: int, tls: bool = False) -> Streams:
        """Return a connection to an address, or to the machine's own proxy by its name. Raises OSError."""
        return await asyncio.open_connection(host, port, ssl=ssl.create_default_context() if tls else None)


def _upstream(scheme: Literal["http", "https"], host: str, environment: Mapping[str, str]) -> Upstream | None:
    """Return the proxy for a host, by http_proxy, https_proxy, all_proxy and no_proxy; None for no proxy.

    Raises UpstreamError for a proxy that does not speak HTTP.
    """
    proxies: dict[str, str] = {}
    for name, value in sorted(environment.items()):  # lower-case names come last, and win
        if name.lower().endswith("_proxy"):
            proxies[name.lower().removesuffix("_proxy")] = value
    url = proxies.get(scheme) or proxies.get("all")
    if not url or _bypasses_proxy(host, proxies.get("no", "")):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise UpstreamError(
            f"{scheme}_proxy of this machine's environment names no HTTP proxy: make it http://HOST:PORT"
        ) from None
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Upstream(parts.hostname, port, parts.scheme == "https", authorization)


def _bypasses_proxy(host: str, no_proxy: str) -> bool:
    """Return whether no_proxy names the host, or one of its parent domains."""
    names = [name.strip().lower().lstrip("*").lstrip(".") for name in no_proxy.split(",")]
    return no_proxy.strip() == "*" or any(name and (host == name or host.endswith(f".{name}")) for name in names)
