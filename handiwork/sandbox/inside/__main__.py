"""Runs the action execution server: ``python -m inside (--fd N | --unix PATH | --from PATH) --workspace DIR``."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from .forward import Forwarder
from .hardening import filter_calls, refuse_inspection
from .server import App

_PREFIX = "HANDIWORK_INSIDE_"
_BACKLOG = 128


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    options = _parse()
    refuse_inspection()
    if options.seccomp:
        filter_calls(options.seccomp)
    if options.parent not in (None, os.getppid()):
        return
    state_from: int | None = options.shell_state
    if options.giver is not None:
        listener, state_from = _receive_listener(options.giver)
    else:
        listener = _listen(options.unix) if options.fd is None else socket.socket(fileno=options.fd)
    state = b"" if state_from is None else _read_all(state_from)
    if options.until is not None:
        _exit_after(lambda: os.read(options.until, 1))
    if options.lifeline:
        state = _read_state()
    _keep_descriptors_from_children()
    _serve(options, listener, state)


def _parse() -> argparse.Namespace:
    """Parse the command line; an invalid one ends the process with a message."""
    parser = argparse.ArgumentParser(prog="inside", description="The action execution server of a sandbox.")
    listen = parser.add_mutually_exclusive_group(required=True)
    listen.add_argument("--fd", type=int, help="descriptor of a listening unix socket")
    listen.add_argument("--unix", help="path of a unix socket to create")
    listen.add_argument("--from", dest="giver", help="path of a socket that sends the listening one; ends with it")
    parser.add_argument("--workspace", required=True, help="directory that relative paths start from")
    parser.add_argument("--soft-timeout", type=float, default=120.0, help="seconds to wait for a command")
    parser.add_argument("--no-bashrc", action="store_true", help="start the shell without the user's ~/.bashrc")
    parser.add_argument(
        "--forward", nargs=2, metavar=("PORT", "PATH"), help="a port of the loopback, and the unix socket behind it"
    )
    parser.add_argument("--seccomp", type=base64.b64decode, help="a seccomp filter for this process and its children")
    parser.add_argument("--parent", type=int, help="pid of the starting process; the server exits if it is gone")
    parser.add_argument("--shell-state", type=int, help="descriptor of the shell's initial state")
    parser.add_argument("--until", type=int, help="descriptor of a pipe; the server ends when its other end closes")
    parser.add_argument("--lifeline", action="store_true", help="read the state from stdin; the server ends with stdin")
    options = parser.parse_args()
    if not os.path.isdir(options.workspace):
        parser.error(f"the workspace {options.workspace} is not a directory")
    return options


def _serve(options: argparse.Namespace, listener: socket.socket, state: bytes) -> None:
    forwarder = Forwarder(int(options.forward[0]), options.forward[1]) if options.forward else None
    app = App(
        options.workspace,
        _shell_environment(),
        options.soft_timeout,
        forwarder,
        bashrc=not options.no_bashrc,
        state=state,
    )
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


def _receive_listener(path: str) -> tuple[socket.socket, int]:
    """Receive the listening socket and a descriptor of the shell's initial state from the platform.

    This process ends when the platform does.
    """
    platform = socket.socket(socket.AF_UNIX)
    platform.connect(path)
    _, (descriptor, state), _, _ = socket.recv_fds(platform, 1, 2)

    _exit_after(lambda: platform.recv(1))
    return socket.socket(fileno=descriptor), state


def _read_state() -> bytes:
    """Read the size in bytes and then the shell's state from stdin; report on stdout that the server listens.

    This process ends when stdin does.
    """
    platform, stdout = os.dup(0), os.dup(1)
    with open(os.devnull, "r+b", buffering=0) as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    with open(platform, "rb", buffering=0, closefd=False) as stream:
        state, size = b"", int(stream.readline())
        while len(state) < size and (piece := stream.read(size - len(state))):
            state += piece
    os.write(stdout, b"listening\n")
    os.close(stdout)
    _exit_after(lambda: os.read(platform, 1))
    return state


def _exit_after(wait: Callable[[], object]) -> None:
    """End this process when ``wait`` returns or raises."""

    def end() -> None:
        with contextlib.suppress(OSError):
            wait()
        # The end of a container's first process ends all other processes too.
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _keep_descriptors_from_children() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


def _shell_environment() -> dict[str, str]:
    """Return the environment without the variables that only this server needs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
    package = str(Path(__file__).resolve().parents[1])
    paths = [path for path in environment.pop("PYTHONPATH", "").split(os.pathsep) if path and path != package]
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment


if __name__ == "__main__":
    main()
