"""The server's side of the notebook's processes: a zygote and the kernel forked from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from ..children import Children, give_way
from ..errors import ActionError
from .json_lines import Json, JsonLineReader

_PROGRAM = Path(__file__).with_name("kernel.py")
_START_TIMEOUT = 30.0
_CHUNK = 65536


class KernelListener(Protocol):
    """Receives the events of a kernel."""

    def on_output(self, data: bytes) -> None:
        """Handle printed bytes."""
        ...

    def on_message(self, message: Json) -> None:
        """Handle a message of the kernel; all earlier output was passed on before."""
        ...

    def on_exit(self, code: int) -> None:
        """Handle the kernel's end with this code, or -N by signal N; its output and messages were passed on before."""
        ...


class Kernel:
    """A forked kernel: one process, with its own session for the processes it starts."""

    def __init__(self, listener: KernelListener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._output, self._printing = os.pipe2(os.O_CLOEXEC)
        ours, self._theirs = socket.socketpair()
        os.set_blocking(self._output, False)
        self._socket = ours
        self._lines = JsonLineReader(ours, self._on_message)
        self._loop.add_reader(self._output, self._read_output)
        self._pid: int | None = None
        self._alive = True
        self._pending = b""

    @property
    def ends(self) -> list[int]:
        """The descriptors to send to the zygote."""
        return [self._theirs.fileno(), self._printing]

    def set_pid(self, pid: int) -> None:
        """Record the pid of the forked kernel."""
        self._pid = pid
        self._close_ends()

    def run(self, line: bytes) -> None:
        """Send a cell, one at a time, or an answer. The socket's buffer holds bytes that the kernel has not read."""
        self._pending += line
        self._send()

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and all processes that its cells started."""
        if self._pid is not None and self._alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, number)

    def finish(self, code: int) -> None:
        """Pass on the remaining output, kill the kernel's processes, and notify the listener."""
        if self._alive:
            self._read_output()
            self._lines.drain()
            self.close()
            self._listener.on_exit(code)

    def close(self) -> None:
        """Kill the kernel without notifying the listener."""
        self.signal(signal.SIGKILL)
        if self._alive:
            self._alive = False
            self._loop.remove_writer(self._socket)
            self._lines.close()
            self._loop.remove_reader(self._output)
            os.close(self._output)
            self._close_ends()

    def _send(self) -> None:
        self._loop.remove_writer(self._socket)
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            self._pending = self._pending[self._socket.send(self._pending) :]
        if self._pending:
            self._loop.add_writer(self._socket, self._send)

    def _close_ends(self) -> None:
        self._theirs.close()
        if self._printing >= 0:
            os.close(self._printing)
            self._printing = -1

    def _read_output(self) -> None:
        """Pass on the pipe's content, but no more than it holds: a process may be writing without end."""
        for _ in range(16):
            try:
                data = os.read(self._output, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._loop.remove_reader(self._output)
                return
            self._listener.on_output(data)

    def _on_message(self, message: Json | None) -> None:
        if message is None:
            self.signal(signal.SIGKILL)  # it is useless now; the zygote reports its end
        else:
            self._read_output()
            self._listener.on_message(message)


class Zygote:
    """A Python with IPython imported, from which kernels are forked; ``lost`` once it is useless."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, children: Children) -> None:
        self._process = process
        self._control = control
        self._children = children
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._forked: asyncio.Future[int] | None = None
        self._kernel: Kernel | None = None
        self._lines = JsonLineReader(control, self._on_message)
        self.lost = False

    @classmethod
    async def start(cls, workspace: str, environment: Mapping[str, str], children: Children) -> Zygote:
        """Start a zygote in the first Python that can run it.

        The candidates are the workspace's virtual environment, the first python3 on the PATH, and the server's own
        Python; each with its own IPython, or if it is new enough with the server's. Raises ActionError if none can.
        """
        for command in python_commands(workspace, environment):
            zygote = cls._spawn(command, workspace, environment, children)
            if zygote is not None and await zygote._wait_until_ready():
                return zygote
        raise ActionError(
            "no_notebook",
            "No Python here can run cells: install IPython in the project's virtual environment, or use the shell.",
        )

    async def fork(self, listener: KernelListener) -> Kernel:
        """Return a new kernel; the previous one must have ended. Raises ActionError if the zygote cannot fork one."""
        kernel = self._kernel = Kernel(listener)
        self._forked = asyncio.get_running_loop().create_future()
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [b"k"], kernel.ends)
        pid = await self._forked
        if not pid:
            kernel.close()
            raise ActionError("no_notebook", "The notebook's Python was killed. The next cell starts it anew.")
        kernel.set_pid(pid)
        return kernel

    def close(self) -> None:
        """Kill the zygote."""
        self.lost = True
        self._lines.close()
        self._process.kill()
        self._process.wait()
        self._children.owned_pids.discard(self._process.pid)

    @classmethod
    def _spawn(
        cls, command: list[str], workspace: str, environment: Mapping[str, str], children: Children
    ) -> Zygote | None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [*command, str(_PROGRAM), str(theirs.fileno()), *_libraries()],
                    cwd=workspace,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            except OSError:
                ours.close()
                return None
        children.owned_pids.add(process.pid)
        give_way(process.pid)
        return cls(process, ours, children)

    async def _wait_until_ready(self) -> bool:
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                if await self._ready:
                    return True
        except TimeoutError:
            pass
        finally:
            if not self._ready.done() or self._ready.cancelled() or not self._ready.result():
                self.close()
        return False

    def _on_message(self, message: Json | None) -> None:
        match message:
            case {"python": str(python)}:
                self._ready.set_result(python)
            case {"pid": int(pid)} if self._forked is not None and not self._forked.done():
                self._forked.set_result(pid)
            case {"code": int(code)} if self._kernel is not None:
                self._kernel.finish(code)
            case _:
                self._lose()

    def _lose(self) -> None:
        self.lost = True
        if not self._ready.done():
            self._ready.set_result("")
        if self._forked is not None and not self._forked.done():
            self._forked.set_result(0)
        elif self._kernel is not None:
            self._kernel.finish(-signal.SIGKILL)


def python_commands(workspace: str, environment: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the commands of the interpreters that may run cells: the project's, that of the PATH, the server's own."""
    for folder in (".venv", "venv"):
        python = os.path.join(workspace, folder, "bin/python")
        if os.path.exists(python):
            yield [python]
    python = shutil.which("python3", path=environment.get("PATH", os.defpath))
    if python is not None:
        yield [python]
    yield [sys.executable, "-I"]


def _libraries() -> list[str]:
    """Return the path of the server's IPython: HANDIWORK_INSIDE_LIBRARIES, or a folder of its own Python."""
    if lent := os.environ.get("HANDIWORK_INSIDE_LIBRARIES"):
        return [lent]
    spec = find_spec("IPython")
    return [] if spec is None or spec.origin is None else [str(Path(spec.origin).parents[1])]
