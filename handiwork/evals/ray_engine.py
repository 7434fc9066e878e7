"""Rollouts on the machines of a Ray cluster: sandboxes on the workers, results and trajectories sent back."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from handiwork.evals import registry
from handiwork.evals.benchmark import Benchmark
from handiwork.evals.conditions import Conditions
from handiwork.evals.results import Result
from handiwork.evals.rollout import Done, Job, roll_out
from handiwork.evals.run import Engine, Execute

RETRIES = 3
"""How often a rollout is begun again on another node when its own was lost."""

JOB, DONE = TypeAdapter(Job), TypeAdapter(Done)


class EngineError(Exception):
    """There is no cluster to run on; the text says what to do."""


def on_ray(address: str | None) -> Engine:
    """Return the engine that executes rollouts on the cluster at ``address``, a new one on this machine where None.

    The data of the benchmark must be in the same folder on every machine. Entering it raises EngineError.
    """

    @asynccontextmanager
    async def engine(conditions: Conditions, benchmark: Benchmark, place: Path) -> AsyncGenerator[Execute]:
        ray = _ray()
        mine = not ray.is_initialized()
        if mine:
            try:
                ray.init(address=address, log_to_driver=False, include_dashboard=False)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise EngineError(f"there is no Ray cluster at {address or 'this machine'}: {error}") from error
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_on_worker)
        settings = conditions.model_dump_json()

        async def execute(job: Job) -> Done:
            try:
                return DONE.validate_json(await remote.remote(settings, JOB.dump_json(job)))
            except ray.exceptions.RayError as error:
                lost = f"it was lost with its node {RETRIES + 1} times: {error}"
                instance = job.instance
                told = Result(id=instance.id, trial=job.trial, group=instance.group, outcome="platform", why=lost)
                return Done(told, "")

        try:
            yield execute
        finally:
            if mine:
                ray.shutdown()

    return engine


def _on_worker(settings: str, job: bytes) -> bytes:
    """Do a rollout in this process, on whatever machine it is."""
    conditions = Conditions.model_validate_json(settings)
    benchmark = registry.find(conditions.benchmark)
    with tempfile.TemporaryDirectory(prefix="handiwork-rollout-") as place:
        Path(place).chmod(0o755)
        done = asyncio.run(roll_out(conditions, benchmark, JOB.validate_json(job), Path(place)))
    return DONE.dump_json(done)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise EngineError("Ray is not installed: pip install 'handiwork[ray]'") from None
    return ray
