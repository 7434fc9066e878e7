"""Queries this machine's Docker daemon by its socket: starting the program ``docker`` takes longer than an answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx2

_USUAL = "/var/run/docker.sock"
_TIMEOUT = {"connect": 5.0, "read": 30.0, "write": 5.0, "pool": 5.0}


async def ask(path: str) -> Any | None:
    """Return the daemon's JSON answer to GET; None if it does not answer, and then ``docker`` may say why."""
    socket = _socket()
    if socket is None:
        return None
    try:
        async with httpx2.AsyncHTTPTransport(uds=socket, verify=False) as transport:
            request = httpx2.Request("GET", f"http://docker{path}", extensions={"timeout": _TIMEOUT})
            response = await transport.handle_async_request(request)
            await response.aread()
    except httpx2.TransportError:
        return None
    return response.json() if response.status_code == 200 else None


def context_chosen() -> bool:
    """Return whether a non-default context may be in use; running docker takes longer than this check."""
    if "DOCKER_CONTEXT" in os.environ:
        return True
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        return b'"currentContext"' in (folder / "config.json").read_bytes()
    except OSError:
        return False


def _socket() -> str | None:
    """Return the socket that ``docker`` would use; None if only ``docker`` knows it."""
    if host := os.environ.get("DOCKER_HOST"):
        return host.removeprefix("unix://") if host.startswith("unix://") else None
    return None if context_chosen() else _USUAL
