"""Runs of the benchmark of sums with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from handiwork.evals import registry
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection, RunPlan
from handiwork.evals.running.results import Result
from handiwork.evals.running.run import Caps, Engine, Run, local
from handiwork.events.record import Limits
from tests.cli.program import bash, finish

ADDING = str(Path(__file__).with_name("adding.py"))


def sums(folder: Path, *ids: str) -> Path:
    """A data folder in which every sum is 4."""
    folder.mkdir(exist_ok=True)
    (folder / "sums.jsonl").write_text("".join(json.dumps({"id": one, "a": 1, "b": 3}) + "\n" for one in ids))
    return folder


def script(file: Path, *replies: dict[str, object]) -> str:
    """The name of a model that gives these replies to every instance; without any it reads the sum and says 4."""
    given = replies or (bash("cat sum.txt"), finish("4"))
    file.write_text("".join(json.dumps(reply) + "\n" for reply in given))
    return f"scripted:{file}"


def no_status(_: str) -> None:
    """Takes what a plan says about its progress."""


async def planned(
    data: Path,
    model: str,
    choice: InstanceSelection = InstanceSelection(),
    trials: int = 1,
    agent: str = "CodeActAgent",
    benchmark: str = ADDING,
    **limits: float,
) -> RunPlan:
    conditions = Conditions(
        benchmark=benchmark,
        split="test",
        data=str(data),
        agent=agent,
        model=model,
        user_model=model,
        limits=Limits.model_validate(limits),
    )
    return await plan.new(registry.find(benchmark), conditions, choice, trials, no_status)


async def finished(
    out: Path, planned: RunPlan, caps: Caps = Caps(), workers: int = 2, engine: Engine = local
) -> dict[tuple[str, int], Result]:
    """Begin the run, or go on with it, and return its results."""
    out.mkdir(exist_ok=True)
    manifest.write(out, planned.manifest)
    run = Run(out, planned.manifest, planned.benchmark, planned.instances, caps, lambda _: None)
    await run.go(engine, workers)
    return run.results.by_key


def by_id(results: Iterable[Result]) -> dict[str, Result]:
    return {result.id: result for result in results}
