"""Enforces the limits of a running sandbox, and reports it in the observation."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from handiwork.errors import SandboxError
from handiwork.events.base import Observation
from handiwork.events.observation import CmdOutputObservation
from handiwork.sandbox.limits import processes
from handiwork.sandbox.limits.cgroups import Counters
from handiwork.sandbox.limits.disk import Disk
from handiwork.sandbox.limits.limits import Limit, ResourceLimits

_PAUSE, _SHORTEST = 0.2, 0.02  # seconds between checks
_FASTEST = 4 << 30  # bytes of memory that a machine can fill in a second, roughly
_NEARLY = 15 / 16  # the share of all allowed processes that counts as too many: the last ones come and go
_STILL_MANY = 1 / 4  # if more than this share is left, an earlier command started the processes
_DYING = 1.0  # seconds that killed processes may take to disappear
_FILE_SIZE_EXIT = 128 + signal.SIGXFSZ


class LimitMonitor:
    """Enforces ``limits`` on one running sandbox.

    ``root_pid`` is the pid of its server, the ancestor of all its other processes. The kernel enforces the limits in
    ``counters`` and only reports them; the others are measured here. ``interrupt`` stops the running action.
    """

    def __init__(
        self,
        limits: ResourceLimits,
        root_pid: int,
        counters: Counters,
        disk: Disk | None,
        interrupt: Callable[[], Awaitable[None]],
    ) -> None:
        self._limits = limits
        self._root_pid = root_pid
        self._counters = counters
        self._disk = disk
        self._interrupt = interrupt
        self._since = processes.ticks()
        self._ended_once = False
        self._running = False
        self._stopped = False
        self._reached: list[Limit] = []
        self._check_lock = asyncio.Lock()
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def run(self, execute: Callable[[], Awaitable[Observation]]) -> Observation:
        """Run ``execute`` and return its observation, with a note of the limits reached. Raises SandboxError."""
        if self._task.done():
            raise SandboxError(f"{self._task.exception()}")
        self._check_memory()
        earlier, self._reached = self._reached, []
        self._since, self._ended_once = processes.ticks(), False
        self._running, self._stopped = True, False
        if self._disk is not None:
            await self._disk.begin()
        try:
            observation = await execute()
        finally:
            self._running = False
        await self._check()
        if isinstance(observation, CmdOutputObservation):
            if observation.exit_code == _FILE_SIZE_EXIT:
                self._reached.append("file_size")
            if observation.status == "timeout":
                self._reached.append("time")
        reached, self._reached = self._reached, []
        return self._annotate(observation, earlier, reached)

    def _annotate(self, observation: Observation, earlier: list[Limit], reached: list[Limit]) -> Observation:
        lines = [f"[before this: {self._limits.reached(limit)}]" for limit in dict.fromkeys(earlier)]
        # The status already reports a time limit.
        lines += [f"[stopped: {self._limits.reached(limit)}]" for limit in dict.fromkeys(reached) if limit != "time"]
        update: dict[str, Any] = {}
        if lines:
            part = "content" if observation.blob is None else "tail"
            text: str = getattr(observation, part)
            added = ("\n" if text and not text.endswith("\n") else "") + "\n".join(lines) + "\n"
            update = {part: text + added, "size": observation.size + len(added)}
        if reached and isinstance(observation, CmdOutputObservation):
            update["limit"] = reached[0]
            if self._stopped and observation.status == "interrupted":
                update["status"] = "done"  # only this monitor interrupted it
        return observation.model_copy(update=update)

    async def _watch(self) -> None:
        pause = _PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = await self._check()

    async def _check(self) -> float:
        """End processes over a limit, and return the seconds until the next check."""
        async with self._check_lock:
            try:
                pause = self._check_memory()
                if self._exceeds_processes():
                    await self._end("processes")
                if self._disk is not None and (full := await self._disk.full()):
                    await self._end(full)
                    await self._disk.measure()
            except OSError as error:
                raise SandboxError(f"the sandbox's limits cannot be enforced: {error}; start it again.") from error
            return pause

    def _check_memory(self) -> float:
        """Enforce the memory limit, and return the seconds until the next check."""
        if "memory" in self._counters:
            if self._counters.risen("memory"):
                self._reached.append("memory")
            return _PAUSE
        members = processes.family(self._root_pid)
        used = sum(map(processes.resident, members))
        if used > self._limits.memory:
            shares = {member: processes.proportional(member) for member in members}
            used = sum(shares.values())
            if used > self._limits.memory and len(members) > 1:
                self._reached.append("memory")
                processes.send(max(members[1:], key=shares.__getitem__), signal.SIGKILL)
        return min(_PAUSE, max(_SHORTEST, (self._limits.memory - used) / _FASTEST))

    def _exceeds_processes(self) -> bool:
        if "processes" in self._counters:
            return self._counters.risen("processes")
        # The kernel counts them too, but does not report when it refuses another one.
        return self._count_processes() > self._limits.processes * _NEARLY

    async def _few_remain(self) -> bool:
        """Return whether few processes remain; killed ones take a moment to disappear."""
        for _ in range(int(_DYING / _SHORTEST)):
            if self._count_processes() <= self._limits.processes * _STILL_MANY:
                return True
            await asyncio.sleep(_SHORTEST)
        return False

    def _count_processes(self) -> int:
        return sum(member.threads for member in processes.family(self._root_pid))

    async def _end(self, limit: Limit) -> None:
        """End the command's processes; if that is not enough, end all but the server, which starts a new shell."""
        self._reached.append(limit)
        if not self._ended_once:
            await asyncio.to_thread(processes.end, self._root_pid, self._since)
        if self._ended_once or not await self._few_remain():
            await asyncio.to_thread(processes.end, self._root_pid, 0)
        self._ended_once = True
        if self._running:
            self._stopped = True
            with suppress(SandboxError):
                await self._interrupt()
        if limit in self._counters:
            self._counters.risen(limit)  # events so far are handled
