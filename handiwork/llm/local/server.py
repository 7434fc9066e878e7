"""The process that runs a local model for all sessions on this machine, until it is unused.

It listens on loopback, requires a key, and is detached from the process that started it. Three files in its folder,
which is private to the user, hold its state: the process holds the lock ``alive`` as long as it lives, all clients
share the lock ``clients``, and ``endpoint.json`` holds its address. The kernel releases locks however their holders
end, so no stale state can remain.
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
from handiwork.paths import write_private

WINDOW = 16_384
"""The context window of one conversation in tokens."""

SLOTS = 4
"""Answers generated at a time; further calls wait. On two cores, four take 0.5 times as long as four in turn."""

CACHE_MIB = 512
"""Memory in MiB for the prompts of conversations without a slot at the moment."""

DRAFT_AFTER, DRAFT = 12, 16
"""After DRAFT_AFTER tokens that repeat a passage of the conversation, the next DRAFT tokens of the passage are a draft.

The model verifies a draft in one pass and keeps the tokens it would generate itself, which halves the time to rewrite a
file.
"""


@dataclass(frozen=True, slots=True)
class Address:
    """The server's address and its key."""

    url: str
    key: str
    pid: int


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """The folder of one server."""

    folder: Path

    @property
    def start_lock(self) -> Path:
        """Held by a process that starts a server, and by a server that decides to end."""
        return self.folder / "start"

    @property
    def alive_lock(self) -> Path:
        """Held by the server as long as it lives."""
        return self.folder / "alive"

    @property
    def clients_lock(self) -> Path:
        """Shared by all clients of the server."""
        return self.folder / "clients"

    @property
    def log(self) -> Path:
        """The server's output since its last start."""
        return self.folder / "log.txt"

    @property
    def _endpoint(self) -> Path:
        return self.folder / "endpoint.json"

    def alive(self) -> bool:
        """Return whether the server lives, loading or ready."""
        return is_held(self.alive_lock)

    def address(self) -> Address | None:
        """Return the server's address; None while it loads or if there is none."""
        try:
            return Address(**json.loads(self._endpoint.read_text()))
        except FileNotFoundError:
            return None

    def publish(self, address: Address) -> None:
        """Write the server's address; only the user can read it."""
        write_private(self._endpoint, json.dumps(asdict(address)))

    def withdraw(self) -> None:
        """Remove the address of an earlier server."""
        self._endpoint.unlink(missing_ok=True)


def serve(folder: ServerFolder, model: Path, idle: float) -> None:
    """Serve the model until it has had no client for ``idle`` seconds."""
    key = secrets.token_urlsafe(32)
    server = start(model, key)
    folder.publish(Address(server.listening_address, key, os.getpid()))
    _wait_until_unused(folder, idle)
    # There is no need to wait for llama.cpp's own threads: they hold nothing that could be lost.
    os._exit(0)


def start(model: Path, key: str, *, drafts: bool = True) -> Any:
    """Start llama.cpp's server in threads of this process, with or without ``drafts``, and return it."""
    # A thread that waits for the others must sleep: one that spins keeps the processor from the thread it waits for as
    # soon as another program runs. perf.contention measures it. OpenMP reads the variable when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Imported here, because this loads llama.cpp, and by name, because it has no types.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * WINDOW
    params.cache_ram_mib = CACHE_MIB
    params.cpuparams.n_threads = len(os.sched_getaffinity(0))
    if drafts:
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        params.speculative.ngram_simple.size_n = DRAFT_AFTER
        params.speculative.ngram_simple.size_m = DRAFT
    return xllamacpp.Server(params)


def _wait_until_unused(folder: ServerFolder, idle: float) -> None:
    """Wait until there was no client for ``idle`` seconds; return with the start lock held and the address removed."""
    last_used = time.monotonic()
    start, clients = FileLock(folder.start_lock), FileLock(folder.clients_lock)
    while True:
        time.sleep(min(1.0, idle / 4))
        if not clients.acquire(wait=False):
            last_used = time.monotonic()
            continue
        clients.release()
        # Clients take their lock under the start lock, so while this process holds that, no new one can appear.
        if time.monotonic() - last_used >= idle and start.acquire(wait=False):
            if clients.acquire(wait=False):
                folder.withdraw()
                return
            start.release()


def main(folder: str, model: str, idle: str) -> None:
    """Serve in a detached process of its own; return at once in the caller's child."""
    server_folder = ServerFolder(Path(folder))
    alive = FileLock(server_folder.alive_lock)
    alive.acquire()
    server_folder.withdraw()
    # The child inherits the lock, so the server counts as alive without interruption.
    if os.fork():
        return
    os.chdir("/")
    serve(server_folder, Path(model), float(idle))


if __name__ == "__main__":
    main(*sys.argv[1:])
