"""Clients and sandboxes whose servers lie."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handiwork.sandbox.client import Client
from handiwork.sandbox.endpoint import Endpoint
from handiwork.sandbox.limits.cgroups import Counters
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.sandbox.limits.monitor import LimitMonitor
from handiwork.sandbox.served import ServedSandbox
from tests.hostile import lying_server
from tests.hostile.lying_server import OK, Answer, serve
from tests.sandbox.helpers import Blobs

SPOOL_LIMIT = 1000


def line(**value: Any) -> bytes:
    """A line of an answer."""
    return json.dumps(value).encode() + b"\n"


def said(data: bytes) -> Answer:
    """Answer everything with this."""

    async def answer(path: str) -> AsyncIterator[bytes]:
        yield data

    return answer


@asynccontextmanager
async def server(
    folder: Path, answer: Answer, *, head: bytes = OK, blobs: Blobs | None = None, grace: float = 60.0
) -> AsyncGenerator[Client]:
    """Serve ``head`` and what ``answer`` gives for each path, and give a client."""

    serving: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            serving.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the test is over
                await serve(reader, writer, head, answer)
        finally:
            writer.transport.abort()

    listening = await asyncio.start_unix_server(accept, folder / "s")
    client = Client(folder / "s", (blobs or Blobs()).save, SPOOL_LIMIT, soft_timeout=0.2, grace=grace)
    async with listening:
        yield client
        await client.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving)


class LyingSandbox(ServedSandbox):
    """A sandbox whose server gives what is in the file ``lie`` to every action."""

    name = "none"

    def __init__(self, workspace: Path, lie: Path) -> None:
        super().__init__(workspace, Blobs().save, ResourceLimits(), 120.0)
        self._lie = lie

    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        listening = endpoint.socket.fileno()
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", lying_server.__file__, str(listening), self._lie),
            pass_fds=(listening,),
            stderr=asyncio.subprocess.PIPE,
        )

    def _find_root_pid(self, process: asyncio.subprocess.Process) -> int | None:
        return process.pid

    def _start_monitor(self, process: asyncio.subprocess.Process, client: Client) -> LimitMonitor:
        return LimitMonitor(self._limits, process.pid, Counters(()), None, client.interrupt)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
