"""The plan of a run: its benchmark, the chosen instances, and the manifest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from handiwork.evals import registry
from handiwork.evals.benchmark import Benchmark, DataError, Instance
from handiwork.evals.running import arms, manifest
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.manifest import Manifest
from handiwork.evals.running.results import RETRIED_ON_RESUME, Results
from handiwork.evals.scoring import data
from handiwork.sandbox.create import image_id


@dataclass(frozen=True, slots=True)
class InstanceSelection:
    """A choice of instances: the first ``limit`` that can run, of those with the given ids; None means all."""

    limit: int | None = None
    ids: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run that can start, or be resumed."""

    benchmark: Benchmark
    instances: Mapping[str, Instance]
    manifest: Manifest


async def new(
    benchmark: Benchmark, conditions: Conditions, choice: InstanceSelection, trials: int, status: Callable[[str], None]
) -> RunPlan:
    """Plan a run. If ``conditions.data`` is "", the data are located, or fetched from upstream.

    Raises DataError, AgentNotFoundError, SandboxError.
    """
    arms.check(benchmark, conditions.agent)
    if conditions.split not in benchmark.splits:
        splits = ", ".join(benchmark.splits)
        raise DataError(f"{benchmark.name} has no split {conditions.split!r}: it has {splits}")
    folder = await data.get(benchmark, conditions.split, Path(conditions.data) if conditions.data else None, status)
    conditions = conditions.model_copy(update={"data": str(folder.absolute())})
    instances = await _load(benchmark, conditions)
    chosen, skipped = _choose(benchmark, instances, choice)
    if not chosen:
        why = next(iter(skipped.values()), "there are none")
        raise DataError(f"no instance of {benchmark.name}, {conditions.split}, can be run here: {why}")
    if benchmark.image(chosen[0]):
        conditions = conditions.model_copy(update={"sandbox": "docker", "image": None})
    digest = await data.digest(benchmark, conditions.split, folder)
    image = await image_id(conditions.sandbox, conditions.image, status)
    run_manifest = manifest.make(conditions, benchmark, [one.id for one in chosen], skipped, trials, digest, image)
    return RunPlan(benchmark, {one.id: one for one in chosen}, run_manifest)


async def resume(out: Path, status: Callable[[str], None]) -> RunPlan:
    """Plan to resume the run in a folder.

    Raises ResultsError, SandboxError, AgentNotFoundError, and DataError if the data, the image or the agent's own files
    have changed: the results would be of two different runs; or if an unfinished instance cannot run here any more.
    ``status`` is told the other differences.
    """
    run_manifest = manifest.read(out)
    conditions = run_manifest.conditions
    benchmark, folder = registry.find(conditions.benchmark), Path(conditions.data)
    if data.missing(benchmark, conditions.split, folder):
        raise DataError(f"the data of the run are no longer in {folder}")
    if await data.digest(benchmark, conditions.split, folder) != run_manifest.data_hash:
        raise DataError(f"the data in {folder} are not those that the run began with: begin another run")
    if await image_id(conditions.sandbox, conditions.image, status) != run_manifest.image:
        raise DataError(f"the image {conditions.image} is not the one that the run began with: begin another run")
    now = manifest.repeated(run_manifest, benchmark)
    if now.agent_code != run_manifest.agent_code:
        raise DataError(f"the files of {conditions.agent} are not those that the run began with: begin another run")
    differences = manifest.differences(run_manifest, now)
    for difference in differences:
        status(f"{difference} differs from the run's beginning")
    instances = {one.id: one for one in await _load(benchmark, conditions)}
    if gone := [one for one in run_manifest.instances if one not in instances]:
        raise DataError(f"{benchmark.name} has no instance {gone[0]} any more: begin another run")
    measured = {key for key, one in Results(out).by_key.items() if one.outcome not in RETRIED_ON_RESUME}
    trials = range(1, run_manifest.trials + 1)
    unfinished = [one for one in run_manifest.instances if not measured.issuperset((one, trial) for trial in trials)]
    if unable := {one: why for one in unfinished if (why := benchmark.skipped(instances[one]))}:
        one, why = next(iter(unable.items()))
        raise DataError(f"{len(unable)} instances of the run, such as {one}, cannot run here any more: {why}")
    done = len(measured)
    if differences and not done:
        run_manifest = now  # no result that counts is from before the change
        manifest.write(out, run_manifest)
    elif differences and done < run_manifest.rollouts:
        changed = tuple(dict.fromkeys((*run_manifest.changed, *differences)))
        run_manifest = run_manifest.model_copy(update={"changed": changed})
        manifest.write(out, run_manifest)
    return RunPlan(benchmark, {one: instances[one] for one in run_manifest.instances}, run_manifest)


async def _load(benchmark: Benchmark, conditions: Conditions) -> list[Instance]:
    try:
        instances = await asyncio.to_thread(benchmark.load, Path(conditions.data), conditions.split)
    except (OSError, ValueError, KeyError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise DataError(f"the data in {conditions.data} are not those of {benchmark.name} ({cause})") from error
    for one in instances:
        if not all(isinstance(text, str) for text in cast("tuple[object, ...]", (one.id, one.group))):
            raise DataError(f"{benchmark.name}: id and group of an instance are text, not {one.id!r} and {one.group!r}")
    ids = [one.id for one in instances]
    if len(set(ids)) < len(ids):
        duplicate = next(one for number, one in enumerate(ids) if one in ids[:number])
        raise DataError(f"the data in {conditions.data} have the instance {duplicate} twice")
    return instances


def _choose(
    benchmark: Benchmark, instances: Sequence[Instance], choice: InstanceSelection
) -> tuple[list[Instance], dict[str, str]]:
    if choice.ids is not None:
        ids = {one.id for one in instances}
        if unknown := [one for one in choice.ids if one not in ids]:
            example = ", ".join(one.id for one in instances[:3])
            raise DataError(f"{benchmark.name} has no instance {', '.join(unknown)}: its ids are like {example}")
        instances = [one for one in instances if one.id in choice.ids]
    chosen: list[Instance] = []
    skipped: dict[str, str] = {}
    for one in instances:
        if len(chosen) == choice.limit:
            break
        if why := benchmark.skipped(one):
            skipped[one.id] = why
        else:
            chosen.append(one)
    return chosen, skipped
