"""The proxy through which this machine itself reaches the internet, if its environment names one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

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


def upstream_for(scheme: Literal["http", "https"], host: str, environment: Mapping[str, str]) -> Upstream | None:
    """Return the proxy for a host, by http_proxy, https_proxy, all_proxy and no_proxy; None for no proxy.

    Raises UpstreamError for a proxy that does not speak HTTP.
    """
    proxies: dict[str, str] = {}
    for name, value in sorted(environment.items()):  # lower-case names come last, and win
        if name.lower().endswith("_proxy"):
            proxies[name.lower().removesuffix("_proxy")] = value
    url = proxies.get(scheme) or proxies.get("all")
    if not url or _goes_without(host, proxies.get("no", "")):
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


def _goes_without(host: str, without: str) -> bool:
    """Return whether no_proxy names the host, or one of its parent domains."""
    names = [name.strip().lower().lstrip("*").lstrip(".") for name in without.split(",")]
    return without.strip() == "*" or any(name and (host == name or host.endswith(f".{name}")) for name in names)
