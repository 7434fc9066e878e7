"""One bash on its own pseudo-terminal, with a side pipe on which it reports its status."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import struct
import termios
from collections.abc import Mapping
from typing import Protocol

from ..children import Children, give_way
from ..errors import ActionError
from ..holder import Holder
from .bash_code import startup_code
from .input_probe import Waiting, processes, waiting_for_terminal

LINE_LIMIT = 4095
"""Bytes that a terminal accepts in one line of input."""
ALL_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""The signals that a program can ignore or catch."""

_CHUNK = 65536
_CHUNKS_PER_TURN = 64  # then the event loop handles other events
_KERNEL_BUFFER = 256 * 1024  # more than a terminal's buffers hold
_STATUS_LIMIT = 4096
_ROWS, _COLUMNS = 50, 100
_FIRST_DESCRIPTOR = 20
_TERMINAL_SETTINGS = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "true",
    "GIT_EDITOR": "true",
}


class TerminalListener(Protocol):
    """Receives the events of a terminal."""

    def on_output(self, data: bytes) -> None:
        """Handle printed bytes."""
        ...

    def on_status(self, word: str, token: str, code: int) -> None:
        """Handle the start or end of the command of ``token``; all its output so far was passed on before."""
        ...

    def on_exit(self, code: int) -> None:
        """Handle the shell's end with ``code``, as bash would report it; all its output was passed on before."""
        ...


class Terminal:
    """A running bash. All methods work on the event loop, without blocking it."""

    def __init__(
        self, listener: TerminalListener, state: int, environment: Mapping[str, str], children: Children
    ) -> None:
        self._listener = listener
        self._state = state
        # In its POSIX mode Bash would not read the startup code.
        own = {name: value for name, value in environment.items() if name not in ("POSIXLY_CORRECT", "SHELLOPTS")}
        self._environment = {**own, **_TERMINAL_SETTINGS}
        self._children = children
        self._loop = asyncio.get_running_loop()
        self._status_data = b""
        self.alive = False

    def open(self, directory: str, *, restored: bool, bashrc: bool) -> None:
        """Start bash in ``directory``; raises ActionError if there is no bash."""
        bash = find_bash(self._environment)
        self._master, self._slave = os.openpty()
        self._modes = _set_modes(self._slave)
        self._device = os.fstat(self._slave).st_rdev
        self._status, self._status_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._command = os.memfd_create("command")
        os.set_blocking(self._master, False)
        self._startup = os.memfd_create("startup")
        descriptors = (self._status_end, self._command, self._state, self._startup)
        self._holder = Holder(bash, descriptors, self._children, lost=self.kill)
        status, command, state, startup = map(self._holder.path, descriptors)
        code = startup_code(status, command, state, restored=restored, bashrc=bashrc)
        os.pwrite(self._startup, f"cd -P -- {_quote(directory)}\n{code}".encode("utf-8", "surrogateescape"), 0)
        self.pid = _spawn(bash, startup, os.ttyname(self._slave), self._environment)
        self._children.owned_pids.add(self.pid)
        give_way(self.pid)
        self._process = os.pidfd_open(self.pid)
        self.alive = True
        self._loop.add_reader(self._master, self._read)
        self._loop.add_reader(self._status, self._read_status)
        self._loop.add_reader(self._process, self._on_exit)

    @property
    def directory(self) -> str | None:
        """The shell's current directory; None if it no longer exists."""
        try:
            directory = os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return None
        return directory if os.path.isdir(directory) else None

    @property
    def foreground(self) -> int | None:
        """The process group in the foreground."""
        try:
            return os.tcgetpgrp(self._master)
        except OSError:
            return None

    def waiting(self) -> Waiting | None:
        """Return how the foreground waits for input; None if it does not, or has not read all its input."""
        group = self.foreground
        unread = struct.unpack("i", fcntl.ioctl(self._slave, termios.TIOCINQ, bytes(4)))[0]
        return None if group is None or unread else waiting_for_terminal(group, self._device)

    def cuts(self, text: bytes) -> bool:
        """Return whether the terminal with its current settings would cut a line of ``text``."""
        canonical = termios.tcgetattr(self._slave)[3] & termios.ICANON
        return bool(canonical) and any(len(line) >= LINE_LIMIT for line in text.replace(b"\r", b"\n").split(b"\n"))

    def restore_modes(self) -> None:
        """Undo changes that programs made to the terminal's settings."""
        with contextlib.suppress(termios.error):
            if termios.tcgetattr(self._slave)[:6] != self._modes[:6]:
                termios.tcsetattr(self._slave, termios.TCSANOW, self._modes)

    def set_command(self, command: bytes) -> None:
        """Store the text that the next command line runs."""
        os.ftruncate(self._command, 0)
        os.pwrite(self._command, command, 0)

    async def write(self, data: bytes) -> None:
        """Type ``data``; wait while the terminal accepts no more."""
        while data and self.alive:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                await self._writable()
            except OSError:
                return  # it hung up; its end is reported separately

    def signal(self, number: int) -> None:
        """Signal the foreground processes, even suspended ones; SIGINT works as Ctrl-C does."""
        group = self.foreground
        if group is None or not self.alive:
            return
        modes = termios.tcgetattr(self._slave)
        if number == signal.SIGINT and modes[3] & termios.ISIG:
            with contextlib.suppress(OSError):
                os.write(self._master, modes[6][termios.VINTR])
        elif group != self.pid:
            # A shell that is interrupted too does not run the commands after the ended program.
            os.kill(self.pid, signal.SIGINT)
            _signal_group(group, number)
        if group != self.pid:
            _signal_group(group, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the shell and every process of its session; its exit is reported as usual."""
        if not self.alive:
            return
        members = [pid for pid, fields in processes() if int(fields[3]) == self.pid]
        for pid in {self.pid, *members}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the session without notifying the listener."""
        if self.alive:
            self.kill()
            os.waitpid(self.pid, 0)
            self._release()

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._master, lambda: ready.done() or ready.set_result(None))
        try:
            await asyncio.wait([ready], timeout=1)
        finally:
            if self.alive:
                self._loop.remove_writer(self._master)

    def _read(self) -> None:
        if not self._drain(_CHUNKS_PER_TURN * 4096):
            # Only a hang-up of the whole terminal leads here: a shell without one is useless.
            self._loop.remove_reader(self._master)
            self.kill()

    def _drain(self, limit: int) -> bool:
        """Pass on the output, about ``limit`` bytes at most; return False once the terminal is hung up.

        The kernel moves all earlier output into the buffer before it reports that there is none, so this also finds the
        end of a command's output.
        """
        while limit > 0:
            try:
                data = os.read(self._master, _CHUNK)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            limit -= len(data)
            self._listener.on_output(data)
        return True

    def _read_status(self) -> None:
        self._status_data += os.read(self._status, _CHUNK)
        *messages, rest = self._status_data.split(b"\0")
        self._status_data = rest[-_STATUS_LIMIT:]
        for message in messages:
            word, _, rest = message.decode("utf-8", "replace").rpartition("\n")[2].partition(" ")
            token, _, code = rest.partition(" ")
            if word == "ended":
                self._drain(_KERNEL_BUFFER)
            if code.isascii() and code.isdigit():
                self._listener.on_status(word, token, int(code))

    def _on_exit(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        os.close(self._slave)
        self._slave = -1
        self._drain(_KERNEL_BUFFER)
        self._release()
        self._listener.on_exit(code if code >= 0 else 128 - code)

    def _release(self) -> None:
        self.alive = False
        self._children.owned_pids.discard(self.pid)
        for fd in (self._master, self._status, self._process):
            self._loop.remove_reader(fd)
        self._loop.remove_writer(self._master)
        self._holder.close()
        descriptors = (self._status_end, self._command, self._startup)
        for fd in (self._master, self._slave, self._status, self._process, *descriptors):
            if fd >= 0:
                os.close(fd)


def memory(name: str) -> int:
    """Return the descriptor of an empty file in memory, with a number that bash code does not use."""
    low = os.memfd_create(name)
    try:
        return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    finally:
        os.close(low)


def trusted_path(environment: Mapping[str, str]) -> str:
    """Return the PATH without the folders of the virtual environment and of the home, which the agent can write."""
    written = [os.path.realpath(environment[name]) for name in ("VIRTUAL_ENV", "HOME") if environment.get(name)]
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(
        folder
        for folder in folders
        if folder.startswith("/") and not any(is_below(os.path.realpath(folder), place) for place in written)
    )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is the folder or below it."""
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def find_bash(environment: Mapping[str, str]) -> str:
    """Return the path of bash, of the trusted PATH; raises ActionError if there is none."""
    bash = shutil.which("bash", path=trusted_path(environment))
    if bash is None:
        raise ActionError("no_shell", "There is no bash on the PATH of the sandbox: install it there.")
    return bash


def _set_modes(terminal: int) -> list[int | list[bytes | int]]:
    modes = termios.tcgetattr(terminal)
    modes[0] &= ~(termios.IXON | termios.IXOFF)
    modes[1] &= ~termios.OPOST  # bytes come out as they were written
    modes[3] &= ~(termios.ECHO | termios.ECHONL)
    modes[3] |= termios.NOFLSH  # Ctrl-C must not discard output
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    return modes


def _spawn(bash: str, startup: str, terminal: str, environment: Mapping[str, str]) -> int:
    # The new session's leader gets its controlling terminal by opening one, so no code runs between fork and exec.
    actions = [(os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2)]
    return os.posix_spawn(
        bash,
        ["bash", "--noprofile", "--noediting", "--rcfile", startup, "-i"],
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=ALL_SIGNALS,
    )


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
