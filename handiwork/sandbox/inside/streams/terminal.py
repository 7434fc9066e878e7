"""The user's own terminal: an interactive bash on a pseudo-terminal, which ends with its stream."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping

from ..actions import Json, RequestError
from ..children import Children, give_way, signal_session
from ..shell.terminal import ALL_SIGNALS, find_bash
from .streams import SendBytes

_PIECE = 65536
_LARGEST = 1000  # rows or columns
_HANG_UP = 1.0  # seconds in which programs may end by themselves after the terminal hung up
_BLOCKED = 1.0  # seconds to wait for a program that reads no input; the kernel drops such input too
_SETTINGS = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PS1": r"\[\e[1;32m\]\w\[\e[0m\]\$ "}
_CODE = 'cd -- "$1" && shift && exec "$BASH" "$@"'


class UserTerminal:
    """A bash in ``workspace`` on a terminal of ``size``, (rows, columns); with ``bashrc`` it reads ~/.bashrc.

    Raises ActionError if there is no bash.
    """

    def __init__(
        self,
        workspace: str,
        environment: Mapping[str, str],
        children: Children,
        size: tuple[int, int],
        *,
        bashrc: bool,
    ) -> None:
        bash = find_bash(environment)
        self._children = children
        self._loop = asyncio.get_running_loop()
        # The slave stays open here: without any, a shell that has closed its own would look like the end.
        self._master, self._slave = os.openpty()
        try:
            os.set_blocking(self._master, False)
            self.resize(size)
            # As in the agent's shell, the new session's leader gets its controlling terminal by opening it.
            actions = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(self._slave), os.O_RDWR, 0)]
            actions += [(os.POSIX_SPAWN_DUP2, 0, descriptor) for descriptor in (1, 2)]
            options = [] if bashrc else ["--norc"]
            self._pid = os.posix_spawn(
                bash,
                ["bash", "-c", _CODE, "bash", workspace, *options, "-i"],
                {**environment, **_SETTINGS},
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=ALL_SIGNALS,
            )
        except BaseException:
            os.close(self._master)
            os.close(self._slave)
            raise
        children.owned_pids.add(self._pid)
        give_way(self._pid)
        self._process = os.pidfd_open(self._pid)
        self._exited = asyncio.Event()
        self._readable = asyncio.Event()
        self._loop.add_reader(self._process, self._on_exit)
        self._closed = False

    def resize(self, size: tuple[int, int]) -> None:
        """Set the number of rows and columns, and notify the foreground program."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    async def serve(self, send: SendBytes) -> None:
        """Send the output until the shell ends."""
        while not self._exited.is_set():
            await self._wait_for_output()
            while data := self._read():
                await send(data)

    async def write(self, data: bytes) -> None:
        """Type bytes; drop them if the foreground program reads no input."""
        while data and not self._closed:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                if not await self._wait_for_room():
                    return
            except OSError:
                return  # the shell is ending

    async def end(self) -> None:
        """Hang up, which programs notice as SIGHUP, and wait a moment for their end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Bash passes the signal on to its jobs and saves its history.
            os.kill(self._pid, signal.SIGHUP)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), _HANG_UP)

    def close(self) -> None:
        """Kill all processes of the terminal's session."""
        if self._closed:
            return
        self._closed = True
        signal_session(self._pid, signal.SIGKILL)
        if not self._exited.is_set():
            self._on_exit()
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        os.close(self._master)
        os.close(self._slave)

    def _on_exit(self) -> None:
        os.waitpid(self._pid, 0)
        self._children.owned_pids.discard(self._pid)
        self._loop.remove_reader(self._process)
        os.close(self._process)
        self._exited.set()
        self._readable.set()

    def _read(self) -> bytes:
        """Return output that has come; b"" if there is none."""
        try:
            return os.read(self._master, _PIECE)
        except OSError:
            return b""

    async def _wait_for_output(self) -> None:
        self._readable.clear()
        if self._exited.is_set():
            return
        self._loop.add_reader(self._master, self._readable.set)
        try:
            await self._readable.wait()
        finally:
            if not self._closed:
                self._loop.remove_reader(self._master)

    async def _wait_for_room(self) -> bool:
        """Wait until the terminal accepts input; return False if it does not."""
        room = asyncio.Event()
        self._loop.add_writer(self._master, room.set)
        try:
            async with asyncio.timeout(_BLOCKED):
                await room.wait()
        except TimeoutError:
            return False
        finally:
            if not self._closed:
                self._loop.remove_writer(self._master)
        return True


def parse_size(request: Json) -> tuple[int, int]:
    """Return the rows and columns of a request. Raises RequestError."""
    match request:
        case {"rows": int(rows), "columns": int(columns)} if 0 < rows <= _LARGEST and 0 < columns <= _LARGEST:
            return rows, columns
        case _:
            raise RequestError(f'The body must have the numbers "rows" and "columns", from 1 to {_LARGEST}.')
