"""``handiwork serve``: binds the address, prints the link, and runs until a signal ends it."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from handiwork.log.errors import LogError
from handiwork.server.access import is_loopback, names_of
from handiwork.server.api.evaluation import FollowedRun
from handiwork.server.app import application
from handiwork.server.connections import limited_protocol
from handiwork.settings import SettingsError

MESSAGE_LIMIT = 64 * 1024
"""The maximum bytes of a message from a follower."""

BACKLOG = 64
"""The number of connections that the kernel queues for the server to accept."""

GRACE = 3
"""Seconds for open requests to finish when the server shuts down."""


def serve(
    data: Path, host: str, port: int, with_token: bool, say: Callable[[str], None], run: FollowedRun | None = None
) -> None:
    """Serve the sessions of a data folder, or the rollouts of ``run``, until a signal arrives.

    Raises SettingsError, LogError.
    """
    if not with_token and not is_loopback(host):
        raise SettingsError(f"other machines can reach {host}, so the server needs its token: leave out --no-token")
    token = token_of(data) if with_token else None
    listener = bind(host, port)
    port = int(listener.getsockname()[1])
    shown = address_for_links(host)
    url_host = f"[{shown}]" if ":" in shown else shown
    link = f"http://{url_host}:{port}/{'' if run is None else 'eval'}"
    run_server(
        # Browsers ignore the port for cookies: two servers on one machine would get each other's.
        application(data, token, names_of(host), f"handiwork-{port}", run),
        listener,
        lambda: say(f"{link}?token={token}" if token else link),
        ws="websockets-sansio",
        # The server accepts this many connections before it applies its limits on them.
        backlog=BACKLOG,
        ws_max_size=MESSAGE_LIMIT,
    )


def run_server(app: ASGIApp, listener: socket.socket, ready: Callable[[], None], **options: Any) -> None:
    """Serve an application on a bound socket until a signal arrives; ``ready`` is called once it answers.

    Raises LogError.
    """
    config = uvicorn.Config(
        app,
        http=limited_protocol(),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        **options,
    )
    server = ReadyServer(config, ready)
    asyncio.run(server.serve([listener]))
    if not server.started:
        raise LogError("the server could not start; see the message above")


class ReadyServer(uvicorn.Server):
    """A uvicorn server that calls ``ready`` once it answers requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def address_for_links(host: str) -> str:
    """Return the host to name in links: for a server on all interfaces, this machine's address in its network."""
    families = {"0.0.0.0": (socket.AF_INET, "192.0.2.1"), "::": (socket.AF_INET6, "2001:db8::1")}  # noqa: S104 - binds none
    if host not in families:
        return host
    family, elsewhere = families[host]
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((elsewhere, 9))  # sends nothing
        return str(probe.getsockname()[0])
    return host


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address; port 0 picks a free port. Raises SettingsError if it cannot be bound."""
    listener: socket.socket | None = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        wrong_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        flag = "--host" if wrong_host else "--port"
        raise SettingsError(f"cannot listen on {host} port {port}: {error.strerror}; give another {flag}") from None
    return listener


def token_of(data: Path) -> str:
    """Return the data folder's token, created on first use; it persists so that links and cookies stay valid."""
    file = data / "token"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_urlsafe(24)
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        existing = file.read_text().strip()
        if len(existing) < 16:
            raise SettingsError(f"the token in {file} is too short: remove the file") from None
        return existing
    with os.fdopen(descriptor, "w") as stream:
        stream.write(token)
    return token
