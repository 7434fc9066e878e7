"""The process that runs a local model for every session on this machine, until nobody needs it.

It listens on loopback, wants a key, and lives apart from whoever started it. Three files in its folder, which
is private to the user, say how things are: the lock ``alive`` is held by the process as long as it lives, the
lock ``clients`` is shared by all who use it, and ``endpoint.json`` tells where it listens. The kernel frees
locks however their holders end, so nothing here can be left over that matters.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from handiwork.llm.local.locks import FileLock, is_held

WINDOW = 16_384
"""Tokens one conversation may have."""

SLOTS = 2
"""Answers generated at a time; further calls wait their turn."""

CACHE_MIB = 512
"""Memory for the prompts of conversations that have no slot at the moment."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens and the key it wants."""

    url: str
    key: str
    pid: int


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """The folder of one server."""

    folder: Path

    @property
    def start_lock(self) -> Path:
        """Held by who starts a server, and by a server that decides to end."""
        return self.folder / "start"

    @property
    def alive_lock(self) -> Path:
        """Held by the server as long as it lives."""
        return self.folder / "alive"

    @property
    def clients_lock(self) -> Path:
        """Shared by all who use the server."""
        return self.folder / "clients"

    @property
    def log(self) -> Path:
        """What the server said since it was last started."""
        return self.folder / "log.txt"

    @property
    def _endpoint(self) -> Path:
        return self.folder / "endpoint.json"

    def alive(self) -> bool:
        """Return whether the server lives, loading or ready."""
        return is_held(self.alive_lock)

    def address(self) -> Address | None:
        """Return where it listens; None while it loads or when there is none."""
        try:
            return Address(**json.loads(self._endpoint.read_text()))
        except FileNotFoundError:
            return None

    def publish(self, address: Address) -> None:
        """Say where the server listens; only the user can read it."""
        new = self._endpoint.with_suffix(".new")
        new.unlink(missing_ok=True)
        with open(new, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            json.dump(asdict(address), file)
        new.rename(self._endpoint)

    def withdraw(self) -> None:
        """Forget where a server listened."""
        self._endpoint.unlink(missing_ok=True)


def serve(place: ServerFolder, model: Path, idle: float) -> None:
    """Serve the model until it had no client for ``idle`` seconds."""
    # Imported here, because this loads llama.cpp, and by name, because it has no types.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    key = secrets.token_urlsafe(32)
    params.api_keys = [key]
    params.ui = False
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * WINDOW
    params.cache_ram_mib = CACHE_MIB
    params.cpuparams.n_threads = len(os.sched_getaffinity(0))
    server = xllamacpp.Server(params)
    place.publish(Address(server.listening_address, key, os.getpid()))
    _wait_until_unused(place, idle)
    # llama.cpp's own threads need not be waited for: nothing is kept that could be lost.
    os._exit(0)


def _wait_until_unused(place: ServerFolder, idle: float) -> None:
    """Return when there was no client for ``idle`` seconds, with the start lock held and the address withdrawn."""
    last_used = time.monotonic()
    start, clients = FileLock(place.start_lock), FileLock(place.clients_lock)
    while True:
        time.sleep(min(1.0, idle / 4))
        if not clients.acquire(wait=False):
            last_used = time.monotonic()
            continue
        clients.release()
        # A client takes its lock while it holds the start lock, so with that one held none can come.
        if time.monotonic() - last_used >= idle and start.acquire(wait=False):
            if clients.acquire(wait=False):
                place.withdraw()
                return
            start.release()


def main(folder: str, model: str, idle: str) -> None:
    """Become a process of its own, apart from the caller, and serve; returns in the caller's child at once."""
    place = ServerFolder(Path(folder))
    alive = FileLock(place.alive_lock)
    alive.acquire()
    place.withdraw()
    # The lock goes over to the child, so there is no moment at which the server does not seem to live.
    if os.fork():
        return
    os.chdir("/")
    serve(place, Path(model), float(idle))


if __name__ == "__main__":
    main(*sys.argv[1:])
