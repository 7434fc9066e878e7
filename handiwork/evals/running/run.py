"""A run: all rollouts of a benchmark, a few at a time, with results written to disk as they finish."""

from __future__ import annotations

import fcntl
import os
import shutil
from asyncio import TaskGroup
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from handiwork.errors import Exit, HandiworkError
from handiwork.evals.benchmark import Benchmark, Instance
from handiwork.evals.running import underway
from handiwork.evals.running.budget import SharedBudget
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.manifest import Manifest
from handiwork.evals.running.results import LOST, RETRIED_ON_RESUME, Result, Results
from handiwork.evals.running.rollout import FinishedRollout, RolloutJob, file_name, roll_out, rollouts_folder
from handiwork.log.blobs import Blobs
from handiwork.log.redaction.redactor import Redactor
from handiwork.paths import lock

TRAJECTORIES, BLOBS = "trajectories", "blobs"
"""The folders of a run's trajectories, and of the pictures and long outputs that their events refer to."""

LEAST_FREE = 1 << 30
"""Bytes that stay free on the disk of a run's folder."""

FAILURES = 10
"""Consecutive failures through no fault of the agent after which the run stops: more would only waste time."""

Execute = Callable[[RolloutJob], Awaitable[FinishedRollout]]
"""Executes a rollout, on this machine or another one."""

Engine = Callable[[Conditions, Benchmark, Path], AbstractAsyncContextManager[Execute]]
"""Prepares the execution of rollouts; the path is a folder for their files while they run."""


class EngineError(HandiworkError):
    """No engine can execute rollouts; the message says how to fix it."""

    exit_code = Exit.INFRASTRUCTURE


class RunStoppedError(Exception):
    """The run stopped early, at a cap or because it ``failed``; the message says ``why`` and how to resume it."""

    def __init__(self, why: str, command: str = "", *, failed: bool) -> None:
        super().__init__(f"{why}; continue with `{command}`" if command else why)
        self.why, self.failed = why, failed


@dataclass(frozen=True, slots=True)
class Caps:
    """The limits of the whole run: ``cost`` in USD, ``disk`` in bytes of trajectories and blobs; None means no cap."""

    cost: float | None = None
    disk: int | None = None

    @property
    def flags(self) -> str:
        """The caps as options of a command, a space before each: no file keeps them for ``--resume``."""
        cost = "" if self.cost is None else f" --max-cost {self.cost:g}"
        return cost + ("" if self.disk is None else f" --max-disk {self.disk / 1e9:g}")


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why no further rollout may start, and the ``caps`` to resume with, without one that stopped the run."""

    why: str
    caps: Caps


@asynccontextmanager
async def local(conditions: Conditions, benchmark: Benchmark, folder: Path) -> AsyncGenerator[Execute]:
    """Execute rollouts in this process, their sandboxes on this machine."""

    async def execute(job: RolloutJob) -> FinishedRollout:
        return await roll_out(conditions, benchmark, job, folder)

    yield execute


class Run:
    """The run in the folder ``out``, which has its manifest; ``finished`` is called with every result."""

    def __init__(
        self,
        out: Path,
        manifest: Manifest,
        benchmark: Benchmark,
        instances: Mapping[str, Instance],
        caps: Caps,
        finished: Callable[[Result], None],
    ) -> None:
        self.results = Results(out)
        self._out, self._manifest, self._benchmark = out, manifest, benchmark
        self._instances, self._caps, self._finished = instances, caps, finished
        self._blobs = Blobs(out / BLOBS, Redactor())
        kept = [*(out / TRAJECTORIES).glob("*"), *(out / BLOBS).glob("*/*")]
        self._bytes = sum(file.stat().st_size for file in kept)
        self._budget = SharedBudget(caps.cost, self.results)
        self._shares: dict[tuple[str, int], float] = {}
        self._failed = 0
        self._stop: _Stop | None = None

    async def go(self, engine: Engine, workers: int) -> None:
        """Execute every rollout without a measured result, ``workers`` at a time.

        Raises EngineError, and RunStoppedError if the run stops early; call ``go`` again to resume it. Only one process
        may execute it.
        """
        with _run_lock(self._out):
            (self._out / TRAJECTORIES).mkdir(exist_ok=True)
            await self._count_interrupted()  # by the death of their process
            try:
                jobs = deque(self._keys())
                with _work_folder(self._out) as work:
                    await self._execute(jobs, engine, workers, work)
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
        if stop := self._stop:
            command = f"handiwork eval run --resume {self._out}{stop.caps.flags}"
            raise RunStoppedError(stop.why, command, failed=stop.caps == self._caps)

    async def _execute(self, jobs: deque[tuple[str, int]], engine: Engine, workers: int, work: Path) -> None:
        try:
            async with engine(self._manifest.conditions, self._benchmark, work) as execute, TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(jobs, execute))
        finally:
            await self._count_interrupted()

    async def _count_interrupted(self) -> None:
        """Count what rollouts have cost that were interrupted."""
        for result in await underway.costs(self._out):
            self.results.add(result)
        underway.clear(self._out)

    @property
    def remaining(self) -> int:
        """The number of rollouts without a measured result."""
        return len(self._keys())

    def _keys(self) -> list[tuple[str, int]]:
        """Return the rollouts without a measured result, those that have failed before last: they may fail again."""
        known = self.results.by_key
        keys = ((one, trial) for trial in range(1, self._manifest.trials + 1) for one in self._manifest.instances)
        missing = [key for key in keys if key not in known or known[key].outcome in RETRIED_ON_RESUME]
        return sorted(missing, key=known.__contains__)

    async def _work(self, jobs: deque[tuple[str, int]], execute: Execute) -> None:
        without_cost = replace(self._caps, cost=None)
        while jobs and not self._stop:
            if not await self._budget.ready(self._shares.get(jobs[0], 0.0)) or not jobs:
                continue
            self._stop = self._stop or self._stop_now()
            if self._stop:
                return
            one, trial = key = jobs.popleft()
            with self._budget.reserved() as budget:
                if budget is not None and budget <= self._shares.get(key, 0.0):
                    why = f"the run has spent {self.results.spent:.2f} USD, and its --max-cost allows no more: raise it"
                    self._stop = _Stop(why, without_cost)
                    return
                job = RolloutJob(self._instances[one], trial, budget)
                note = underway.note(self._out, job)
                done = self._unfit(job) or await execute(job)
            if budget is not None and done.result.unpriced:
                why = "the cost of some calls is not known, so --max-cost cannot be kept: leave it out"
                self._stop = _Stop(why, without_cost)
            if budget is not None and done.result.outcome == "stopped":
                # Its share was too small, but perhaps not the rest of the run's budget.
                self._shares[key] = budget
                jobs.append(key)
            # Outside: the budget would count the share beside the cost while blobs are stored.
            await self._record(done)
            note.unlink(missing_ok=True)

    def _unfit(self, job: RolloutJob) -> FinishedRollout | None:
        """Return the result of a job whose instance another trial has found unfit, which may have taken long."""
        name = job.instance.id
        others = (self.results.by_key.get((name, trial)) for trial in range(1, self._manifest.trials + 1))
        other = next((one for one in others if one is not None and one.outcome == "unfit"), None)
        if other is None:
            return None
        return FinishedRollout(Result(id=name, trial=job.trial, group=other.group, outcome="unfit", why=other.why), "")

    def _stop_now(self) -> _Stop | None:
        """Return why no further rollout may start, None if one may."""
        caps = self._caps
        if self._budget.exhausted:
            why = f"the run has spent {self.results.spent:.2f} USD, its --max-cost: raise it"
            return _Stop(why, replace(caps, cost=None))
        if caps.disk is not None and self._bytes >= caps.disk:
            why = f"the trajectories take {self._bytes / 1e9:.1f} GB, the run's --max-disk: raise it"
            return _Stop(why, replace(caps, disk=None))
        if (free := shutil.disk_usage(self._out).free) < LEAST_FREE:
            return _Stop(f"the disk of {self._out} has only {free / 1e9:.1f} GB left", caps)
        if self._failed >= FAILURES:
            why = f"the last {FAILURES} rollouts failed for no fault of the agent, see {self.results.file}"
            return _Stop(why, caps)
        return None

    async def _record(self, done: FinishedRollout) -> None:
        result = done.result
        if done.trajectory:
            path = Path(TRAJECTORIES, f"{file_name(result.id)}-{result.trial}.jsonl")
            self._bytes += (self._out / path).write_bytes(done.trajectory.encode())
            result = result.model_copy(update={"trajectory": str(path)})
        self.results.add(result)
        self._failed = self._failed + 1 if result.outcome in LOST else 0
        self._finished(result)
        # Last: a run that is interrupted here must not repeat the rollout.
        for blob in done.blobs.values():
            await self._blobs.put(blob)
            self._bytes += len(blob)
        self._blobs.close()


@contextmanager
def _work_folder(out: Path) -> Generator[Path]:
    """Create the folder for the rollouts' files.

    The run's folder has a link to it, so that the next process can remove the files of a killed one.
    """
    link = out / underway.WORK
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()
    try:
        with rollouts_folder() as work:
            link.symlink_to(work)
            yield work
    finally:
        link.unlink(missing_ok=True)


@contextmanager
def _run_lock(out: Path) -> Generator[None]:
    try:
        descriptor = lock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunStoppedError(f"another process works in {out}: wait for its end", failed=True) from None
    try:
        yield
    finally:
        os.close(descriptor)
