"""Forwards connections to a sandbox's socket to its server in a container of a remote daemon."""

from __future__ import annotations

import asyncio
import socket
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from handiwork.errors import SandboxError
from handiwork.sandbox import bundle
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.tasks import run_until_one_ends

_PIECE = 65536


class Relay:
    """Forwards each connection on ``listening``, which it takes over, to ``path`` in the ``container``.

    Each uses its own `docker exec`. One is started in advance, so that a command can be interrupted even after it has
    used up the sandbox's limit of processes.
    """

    def __init__(self, listening: socket.socket, container: str, path: str) -> None:
        python, *arguments = bundle.INSIDE_PYTHON
        self._command = ["exec", "--interactive", container, python, *arguments, "-m", "inside.relay", path]
        self._listening = listening
        self._listening.setblocking(False)
        self._starting = asyncio.Lock()
        self._spare = asyncio.create_task(self._join())
        self._open: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    @asynccontextmanager
    async def still(self) -> AsyncGenerator[None]:
        """Start nothing in the container while this context is open.

        A `docker exec` that begins while the container is paused fails, and one that is caught half-way never resumes.
        """
        async with self._starting:
            yield

    async def close(self) -> None:
        """Close all connections and stop."""
        tasks = [self._accepting, *self._open]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening.close()
        with suppress(SandboxError):
            await _end(await self._spare)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(self._listening)
            exec_task, self._spare = self._spare, asyncio.create_task(self._join())
            task = asyncio.create_task(self._serve(connection, exec_task))
            self._open.add(task)
            task.add_done_callback(self._open.discard)

    async def _join(self) -> Process:
        async with self._starting:
            process = await docker_cli.start(*self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
            assert process.stdout is not None
            await process.stdout.read(1)  # empty if it failed; the connection then sees the end of its stream
            return process

    async def _serve(self, connection: socket.socket, exec_task: asyncio.Task[Process]) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        try:
            process = await asyncio.shield(exec_task)
        except SandboxError:
            writer.close()  # the client notices that
            return
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await run_until_one_ends(_forward(reader, process.stdin), _forward(process.stdout, writer))
        finally:
            writer.close()
            await _end(process)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):  # each side notices the other's end by itself
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()


async def _end(process: Process) -> None:
    """End the process; its other half inside ends with its stdin."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
