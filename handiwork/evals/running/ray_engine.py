"""Rollouts on the machines of a Ray cluster: sandboxes on its nodes, results and trajectories sent back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handiwork.evals import registry
from handiwork.evals.benchmark import Benchmark
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.results import Result
from handiwork.evals.running.rollout import FinishedRollout, RolloutJob, roll_out, rollouts_folder
from handiwork.evals.running.run import Engine, EngineError, Execute

CONNECT = 10.0
"""Seconds within which a cluster must answer."""

RETRIES = 3
"""The number of retries on another node after a node was lost."""


def on_ray(address: str | None) -> Engine:
    """Return the engine that executes rollouts on the cluster at ``address``; None means a new one on this machine.

    Handiwork must be installed on every node, with the benchmark's data in the same folder. Entering the engine raises
    EngineError.
    """

    @asynccontextmanager
    async def engine(conditions: Conditions, benchmark: Benchmark, folder: Path) -> AsyncGenerator[Execute]:
        ray = _import_ray()
        await _join(ray, address)
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_run_on_node)

        async def execute(job: RolloutJob) -> FinishedRollout:
            try:
                return await remote.remote(conditions, job)
            except ray.exceptions.RayError as error:
                instance, why = job.instance, f"it was lost with its node {RETRIES + 1} times: {error}"
                result = Result(id=instance.id, trial=job.trial, group=instance.group, outcome="platform", why=why)
                return FinishedRollout(result, "")

        try:
            yield execute
        finally:
            ray.shutdown()

    return engine


async def _join(ray: Any, address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address:
        await _check_reachable(address)
    local_options = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        # Without "local" an environment variable or a file of Ray's could name a cluster to join.
        ray.init(address or "local", log_to_driver=False, logging_level="error", **({} if address else local_options))
    except (OSError, RuntimeError, ValueError) as error:
        raise EngineError(_no_cluster(address or "this machine", error)) from error


async def _check_reachable(address: str) -> None:
    """Raise EngineError if nothing listens at HOST:PORT: Ray would wait long, and end the process."""
    host, _, port = address.rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, int(port)), CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        raise EngineError(_no_cluster(address, error)) from error
    writer.close()


def _no_cluster(address: str, error: Exception) -> str:
    return (
        f"there is no Ray cluster at {address} ({error}): begin one with `ray start --head`, and give the HOST:PORT "
        "that it says with --ray-address"
    )


def _run_on_node(conditions: Conditions, job: RolloutJob) -> FinishedRollout:
    """Execute a rollout in this process, on any node."""
    benchmark = registry.find(conditions.benchmark)
    with rollouts_folder() as folder:
        return asyncio.run(roll_out(conditions, benchmark, job, folder))


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise EngineError("Ray is not installed: pip install 'handiwork[ray]'") from None
    return ray
