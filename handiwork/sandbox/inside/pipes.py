"""Programs that the platform talks to through their stdin and stdout, like MCP servers on stdio."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import IO, cast

from .actions import RequestError, parse_secrets
from .children import Children, give_way, signal_session
from .errors import ActionError
from .shell.terminal import trusted_path

SendLine = Callable[[dict[str, object]], Awaitable[None]]
"""Sends one JSON object to the platform; waits while the platform does not read."""

MOST = 32
"""The number of programs that run at the same time."""

_PIECE = 65536
_CLOSING = 1.0  # seconds in which a program may end by itself after its stdin closed
_LAST_OUTPUT = 0.5  # seconds for output that descendants still write after the program's end


class Pipes:
    """The running programs, by their handles."""

    def __init__(self, workspace: str, environment: Mapping[str, str], children: Children) -> None:
        self._workspace, self._environment, self._children = workspace, environment, children
        self._programs: dict[str, _PipedProgram] = {}
        self._started = 0

    async def run(self, request: Mapping[str, object], send: SendLine) -> None:
        """Run the "command" of the request until it ends or this call is cancelled; all its processes end then.

        The request's "variables", which may be secrets, join its environment, whose PATH is the trusted one. Sends
        {"pipe": HANDLE}, then {"out": TEXT} and {"err": TEXT} as they come, at last {"exit": CODE}.

        Raises RequestError, and ActionError if the program cannot be started.
        """
        command, variables = _parse_program(request)
        if len(self._programs) >= MOST:
            raise ActionError("failed", f"{MOST} programs run behind pipes already.")
        environment = {**self._environment, "PATH": trusted_path(self._environment), **variables}
        program = _PipedProgram(command, self._workspace, environment, self._children)
        self._started += 1
        handle = str(self._started)
        self._programs[handle] = program
        try:
            await send({"pipe": handle})
            await program.serve(send)
        finally:
            del self._programs[handle]
            program.close()

    async def write(self, handle: str, data: bytes) -> None:
        """Write to a program's stdin. Raises ActionError if it has ended."""
        program = self._programs.get(handle)
        if program is None:
            raise ActionError("not_found", f"There is no program behind pipe {handle}.")
        await program.write(data)

    def close(self) -> None:
        """End all programs."""
        for program in self._programs.values():
            program.close()


def _parse_program(request: Mapping[str, object]) -> tuple[list[str], dict[str, str]]:
    command: object = request.get("command")
    words = cast("list[object]", command) if isinstance(command, list) else []
    if not words or not all(isinstance(word, str) for word in words):
        raise RequestError('The body must have the list of strings "command".')
    return cast("list[str]", words), parse_secrets(request.get("variables"))


class _PipedProgram:
    """One program and its three pipes."""

    def __init__(
        self, command: Sequence[str], workspace: str, environment: Mapping[str, str], children: Children
    ) -> None:
        self._children = children
        try:
            self._process = subprocess.Popen(
                command,
                cwd=workspace,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ActionError("no_program", f"{command[0]} cannot be started: {reason}") from error
        children.owned_pids.add(self._process.pid)
        give_way(self._process.pid)
        self._ended = asyncio.Event()
        self._exit_fd: int | None = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._exit_fd, self._reap)
        self._stdin: asyncio.StreamWriter | None = None
        self._writing = asyncio.Lock()

    async def serve(self, send: SendLine) -> None:
        """Send the output until the program ends, then its exit code."""
        turn = asyncio.Lock()

        async def pump(name: str, pipe: IO[bytes] | None) -> None:
            assert pipe is not None
            reader, decoder = asyncio.StreamReader(), codecs.getincrementaldecoder("utf-8")("replace")
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
            try:
                while data := await reader.read(_PIECE):
                    if text := decoder.decode(data):
                        async with turn:
                            await send({name: text})
            finally:
                transport.close()

        pumps = [
            asyncio.create_task(pump("out", self._process.stdout)),
            asyncio.create_task(pump("err", self._process.stderr)),
        ]
        try:
            await self._ended.wait()
            await asyncio.wait(pumps, timeout=_LAST_OUTPUT)
        except asyncio.CancelledError:
            await self._ask_to_end()
            raise
        finally:
            for task in pumps:
                task.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        await send({"exit": self._process.returncode})

    async def write(self, data: bytes) -> None:
        """Write to stdin. Raises ActionError if the program reads no more."""
        async with self._writing:
            try:
                if self._stdin is None:
                    self._stdin = await self._open_stdin()
                self._stdin.write(data)
                await self._stdin.drain()
            except (OSError, ValueError) as error:
                raise ActionError("not_found", f"The program reads no more: {error}") from error

    async def _open_stdin(self) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), self._process.stdin
        )
        return asyncio.StreamWriter(transport, protocol, None, loop)

    async def _ask_to_end(self) -> None:
        """Close stdin, which ends a well-behaved program, and wait a moment."""
        if self._stdin is not None:
            self._stdin.close()
        elif self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _CLOSING)

    def close(self) -> None:
        """Kill all its processes."""
        signal_session(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reap()
        if self._stdin is not None:
            self._stdin.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _reap(self) -> None:
        self._process.wait()
        if self._exit_fd is not None:
            asyncio.get_running_loop().remove_reader(self._exit_fd)
            os.close(self._exit_fd)
            self._exit_fd = None
        self._children.owned_pids.discard(self._process.pid)
        self._ended.set()
