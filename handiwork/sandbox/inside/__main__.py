"""Runs the action execution server: ``python -m inside (--fd N | --unix PATH) --workspace DIR``."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
from pathlib import Path

import uvicorn

from .server import App

_OWN_PREFIX = "HANDIWORK_INSIDE_"
_BACKLOG = 128


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="inside", description="The action execution server of a sandbox.")
    listen = parser.add_mutually_exclusive_group(required=True)
    listen.add_argument("--fd", type=int, help="descriptor of a listening unix socket")
    listen.add_argument("--unix", help="path of a unix socket to make")
    parser.add_argument("--workspace", required=True, help="directory that relative paths start from")
    parser.add_argument("--soft-timeout", type=float, default=120.0, help="seconds a command is waited for")
    parser.add_argument("--no-bashrc", action="store_true", help="start the shell without the user's ~/.bashrc")
    parser.add_argument("--parent", type=int, help="the process that starts it; if that is gone, it does not begin")
    parser.add_argument("--shell-state", type=int, help="descriptor to read the state from that the shell begins with")
    options = parser.parse_args()
    if options.parent not in (None, os.getppid()):
        return
    if not os.path.isdir(options.workspace):
        parser.error(f"the workspace {options.workspace} is no directory")
    listener = _listen(options.unix) if options.fd is None else socket.socket(fileno=options.fd)
    state = b"" if options.shell_state is None else _read_all(options.shell_state)
    _keep_descriptors_from_children()
    app = App(options.workspace, _shell_environment(), options.soft_timeout, bashrc=not options.no_bashrc, state=state)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=3600,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _listen(path: str) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(_BACKLOG)
    return listener


def _keep_descriptors_from_children() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


def _shell_environment() -> dict[str, str]:
    """Return the environment without what is there only so that this server runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_PREFIX)}
    own = str(Path(__file__).resolve().parents[1])
    paths = [path for path in environment.pop("PYTHONPATH", "").split(os.pathsep) if path and path != own]
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment


if __name__ == "__main__":
    main()
