"""``handiwork serve``: binds the address, says the link, runs until it is told to end."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from handiwork.log.errors import LogError
from handiwork.server.access import is_loopback, names_of
from handiwork.server.app import application
from handiwork.server.connections import limited_protocol
from handiwork.settings import SettingsError

MESSAGE_LIMIT = 64 * 1024
"""Bytes of what a follower may send."""

BACKLOG = 64
"""Connections that the system keeps for the server to accept."""

GRACE = 3
"""Seconds that requests have to end when the server is told to."""


def serve(data: Path, host: str, port: int, with_token: bool, say: Callable[[str], None]) -> None:
    """Serve the sessions of a data folder until a signal comes. Raises SettingsError, LogError."""
    if not with_token and not is_loopback(host):
        raise SettingsError(f"{host} can be reached by others, so the server needs its token: leave out --no-token")
    token = token_of(data) if with_token else None
    listening = bind(host, port)
    port = int(listening.getsockname()[1])
    shown = f"[{host}]" if ":" in host else host
    link = f"http://{shown}:{port}/"
    config = uvicorn.Config(
        # Cookies know no ports: two servers of one machine would take each other's.
        application(data, token, names_of(host), f"handiwork-{port}"),
        http=limited_protocol(),
        ws="websockets-sansio",
        # So many are accepted before the limits of connections are looked at.
        backlog=BACKLOG,
        ws_max_size=MESSAGE_LIMIT,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config, lambda: say(f"{link}?token={token}" if token else link))
    asyncio.run(server.serve([listening]))
    if not server.started:
        raise LogError("the server could not begin; what is above says why")


class _Server(uvicorn.Server):
    """Calls ``ready`` once requests are answered."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; port 0 takes a free one. Raises SettingsError where that is not possible."""
    listening: socket.socket | None = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        if listening is not None:
            listening.close()
        raise SettingsError(f"cannot listen on {host} port {port}: {error.strerror}; give another --port") from None
    return listening


def token_of(data: Path) -> str:
    """Return the data folder's token, made where there is none; it stays, so that links and cookies do."""
    file = data / "token"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = secrets.token_urlsafe(24)
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        found = file.read_text().strip()
        if len(found) < 16:
            raise SettingsError(f"{file} has no token that would do: remove it") from None
        return found
    with os.fdopen(descriptor, "w") as stream:
        stream.write(made)
    return made
