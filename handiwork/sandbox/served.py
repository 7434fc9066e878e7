"""The base of all sandboxes with an action server: they run the server's process and its client."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from handiwork.errors import SandboxError
from handiwork.events.base import Action, Observation
from handiwork.sandbox.base import NO_SECRETS, OnOutput
from handiwork.sandbox.client import Client, SaveBlob
from handiwork.sandbox.egress.proxy import Egress, Proxy
from handiwork.sandbox.endpoint import Endpoint, sweep_stale
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.sandbox.limits.monitor import LimitMonitor
from handiwork.sandbox.limits.processes import paused
from handiwork.sandbox.pipe import Pipe
from handiwork.sandbox.questions import AskModel
from handiwork.sandbox.streams.byte_stream import ByteStream, Size
from handiwork.tasks import run_to_end
from handiwork.workspace.in_place import InPlaceFolder
from handiwork.workspace.snapshots.store import Snapshot, Snapshots

_START_TIMEOUT = 60.0
_STDERR_TAIL = 8192

OwnSkills = Mapping[str, JsonValue]
"""A file of skills: {"name": MODULE, "source": TEXT, "functions": [NAME]}."""


class ServedSandbox(ABC):
    """Starts an action server, sends it actions, and ends it."""

    name: str
    own_skills: Sequence[OwnSkills] = ()
    """The user's own skills, which the notebook has in addition to the platform's."""

    def __init__(
        self,
        workspace: Path,
        save_blob: SaveBlob,
        limits: ResourceLimits,
        soft_timeout: float,
        snapshots: Snapshots | None = None,
        egress: Egress | None = None,
    ) -> None:
        self.workspace = str(workspace)
        self._save_blob = save_blob
        self._limits = limits
        self._soft_timeout = soft_timeout
        self._snapshots = snapshots
        self._proxy = None if egress is None else Proxy(egress)
        self._endpoint: Endpoint | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._client: Client | None = None
        self._monitor: LimitMonitor | None = None
        self._messages: asyncio.Task[bytes] | None = None
        self._in_place: InPlaceFolder | None = None

    @abstractmethod
    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        """Start the server on the endpoint's socket, with a pipe for stderr."""

    @abstractmethod
    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """End the server and all processes it started."""

    @abstractmethod
    def _find_root_pid(self, process: asyncio.subprocess.Process) -> int | None:
        """Return the host's pid of the sandbox's first process, the ancestor of all others; None before it exists."""

    @abstractmethod
    def _start_monitor(self, process: asyncio.subprocess.Process, client: Client) -> LimitMonitor:
        """Start to watch the limits of the server that runs as ``process``."""

    async def start(self) -> None:
        """Start the sandbox, or restart it after it was lost. Raises SandboxError."""
        await self.close()
        try:
            await asyncio.to_thread(sweep_stale)
            self._endpoint = Endpoint()
            if self._proxy is not None:
                await self._proxy.listen(self._endpoint.proxy)
            self._client = Client(self._endpoint.path, self._save_blob, soft_timeout=self._soft_timeout)
            self._process = await self._spawn(self._endpoint)
            # Only the server's own copy may remain, so that clients notice when the server ends.
            self._endpoint.socket.close()
            await self._wait_until_ready(self._process, self._client)
            if self.own_skills:
                await self._client.give_skills(self.own_skills)
            self._monitor = self._start_monitor(self._process, self._client)
        except OSError as error:
            await self.close()
            raise SandboxError(f"the {self.name} sandbox cannot be started: {error}") from error
        except BaseException:
            await self.close()
            raise

    async def execute(
        self,
        action: Action,
        on_output: OnOutput | None = None,
        secrets: Mapping[str, str] = NO_SECRETS,
        ask: AskModel | None = None,
    ) -> Observation:
        """Run a runnable action. Raises SandboxError if the sandbox is lost; cancelling stops the action."""
        client = self._running_client()
        assert self._monitor is not None
        try:
            return await self._monitor.run(lambda: client.execute(action, on_output, secrets, ask))
        finally:
            await self._make_harmless()

    async def interrupt(self) -> None:
        """Stop the running action; its ``execute`` returns the output so far. Raises SandboxError."""
        await self._running_client().interrupt()

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file inside. Raises OSError, SandboxError."""
        await self._running_client().upload(path, data)

    def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file inside. Raises FileNotFoundError, IsADirectoryError, SandboxError."""
        return self._running_client().download(path)

    async def browser(self, command: str, **arguments: JsonValue) -> JsonValue:
        """Run a command of the browser for the platform. Raises BrowserError, SandboxError."""
        return await self._running_client().browser(command, arguments)

    def pipe(
        self, command: Sequence[str], variables: Mapping[str, str] = NO_SECRETS
    ) -> AbstractAsyncContextManager[Pipe]:
        """Start a program that runs as long as the context. Raises PipeError, SandboxError."""
        return self._running_client().pipe(command, variables)

    @asynccontextmanager
    async def terminal(self, size: Size) -> AsyncGenerator[ByteStream]:
        """Open a terminal for the user, whose shell ends with the context. Raises StreamRefusedError, SandboxError."""
        try:
            async with self._running_client().terminal(size) as stream:
                yield stream
        finally:
            await self._make_harmless()

    def connect(self, port: int) -> AbstractAsyncContextManager[ByteStream]:
        """Connect to a server inside, as long as the context is open. Raises StreamRefusedError, SandboxError."""
        return self._running_client().connect(port)

    async def ports(self) -> list[int]:
        """Return the TCP ports on which programs inside listen, ascending. Raises SandboxError."""
        return await self._running_client().ports()

    async def snapshot(self) -> Snapshot | None:
        """Save the files and the shell's state; processes are paused while files are copied."""
        if self._snapshots is None:
            return None
        root_pid, state = None, b""
        if self._client is not None and self._process is not None:
            comparison = asyncio.create_task(asyncio.to_thread(self._snapshots.differ))
            try:
                state = await self._client.shell_state()
            finally:
                await asyncio.wait([comparison])
            if not comparison.result() and state == self._snapshots.shell:
                return None
            root_pid = self._find_root_pid(self._process)
        return await run_to_end(
            asyncio.to_thread(self._snapshots.take, state, partial(paused, root_pid) if root_pid else nullcontext)
        )

    async def close(self) -> None:
        """End all processes and mounts of the sandbox; the workspace's files stay. Closing twice is allowed."""
        if self._monitor is not None:
            await self._monitor.close()
            self._monitor = None
        if self._process is not None:
            await self._stop(self._process)
            self._process = None
        if self._proxy is not None:
            await self._proxy.close()
        if self._messages is not None:
            await self._messages
            self._messages = None
        if self._client is not None:
            await self._client.close()
            self._client = None
        if self._endpoint is not None:
            await self._endpoint.close()
            self._endpoint = None
        if self._in_place is not None:
            in_place, self._in_place = self._in_place, None
            await run_to_end(asyncio.to_thread(in_place.close))

    async def _enter_folder(self, workspace: Path, session_dir: Path) -> None:
        """Start to work in the user's directory. Raises SandboxError, OSError."""

        def enter() -> None:
            self._in_place = InPlaceFolder(workspace, session_dir)

        await run_to_end(asyncio.to_thread(enter))

    async def _make_harmless(self) -> None:
        """Disable programs that repositories created in place would run, while the sandbox's processes are paused."""
        if self._in_place is None or self._process is None:
            return
        in_place, root_pid = self._in_place, self._find_root_pid(self._process)

        def make_harmless() -> None:
            with paused(root_pid) if root_pid else nullcontext():
                in_place.make_harmless()

        await run_to_end(asyncio.to_thread(make_harmless))

    def _running_client(self) -> Client:
        if self._client is None:
            raise SandboxError("the sandbox is not started: await its start() first.")
        return self._client

    async def _wait_until_ready(self, process: asyncio.subprocess.Process, client: Client) -> None:
        assert process.stderr is not None
        self._messages = asyncio.create_task(_read_tail(process.stderr))
        ready, exit_task = asyncio.create_task(client.health()), asyncio.create_task(process.wait())
        try:
            await asyncio.wait({ready, exit_task}, timeout=_START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
            if ready.done() and ready.exception() is None:
                return
            await self._stop(process)
            errors = (await self._messages).decode("utf-8", "replace").strip()
        finally:
            ready.cancel()
            exit_task.cancel()
            await asyncio.gather(ready, exit_task, return_exceptions=True)
        raise SandboxError(f"the {self.name} sandbox did not start: {errors or 'its server did not answer'}")


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    """Read to the end and return the last bytes; processes inside may write without end and must not block."""
    tail = b""
    while piece := await stream.read(65536):
        tail = (tail + piece)[-_STDERR_TAIL:]
    return tail
