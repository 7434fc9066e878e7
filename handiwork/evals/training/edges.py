"""Trains the edges of a swarm by REINFORCE on the scores of rollouts, each with a graph drawn from the swarm."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from handiwork.agents.swarm.graph import Swarm, save
from handiwork.agents.swarm.reinforce import draw, learn
from handiwork.evals.benchmark import Instance
from handiwork.evals.running.budget import SharedBudget
from handiwork.evals.running.plan import RunPlan
from handiwork.evals.running.results import RETRIED_ON_RESUME, Result
from handiwork.evals.running.rollout import FinishedRollout, RolloutJob, SideModel, roll_out, rollouts_folder
from handiwork.evals.running.run import RunStoppedError


class GraphRollouts:
    """Executes rollouts, ``workers`` at a time, each with a graph of its own, within a budget of ``cap`` USD.

    ``hash`` is that of what the rollouts share: their conditions but the agent, the data, and the instances.
    ``model`` is the model that writes prompts; ``spent`` is USD, its calls included, as far as known. ``earlier`` is
    the part of it that a training had spent before it was resumed. ``dearest`` is USD of the dearest rollout, None as
    long as no cost is known.
    """

    def __init__(self, run_plan: RunPlan, workers: int, cap: float | None, folder: Path) -> None:
        self.instances: Sequence[Instance] = list(run_plan.instances.values())
        manifest = run_plan.manifest
        self._conditions, self._benchmark = manifest.conditions, run_plan.benchmark
        shared = self._conditions.model_dump_json(exclude={"agent"}), manifest.data_hash, *manifest.instances
        self.hash = hashlib.sha256("\n".join(shared).encode()).hexdigest()
        self._cap, self._folder, self._budget = cap, folder, SharedBudget(cap, self)
        self._turn = asyncio.Semaphore(workers)
        self._count, self._spent, self.earlier = 0, 0.0, 0.0
        self.dearest: float | None = None
        self.lost = 0
        self.model = SideModel(self._conditions.model, self._conditions.base_url)

    @property
    def spent(self) -> float:
        """USD so far."""
        return self.earlier + self._spent + self.model.cost

    async def run(self, jobs: Sequence[tuple[Swarm, Instance]], trial: int = 1) -> list[FinishedRollout]:
        """Return the rollouts in the order of the jobs; those that were not measured have no score.

        A rollout that its share of the budget stopped is repeated alone, with the whole remainder if that is larger.
        Raises RunStoppedError if the budget does not allow all of them, or if none was measured.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._in_turn(graph, instance, trial)) for graph, instance in jobs]
        done: list[FinishedRollout] = []
        for (graph, instance), task in zip(jobs, tasks, strict=True):
            one, share = task.result()
            rest = None if self._cap is None else self._cap - self.spent
            is_cut = one.result.outcome == "stopped" and not one.result.unpriced
            if is_cut and rest is not None and share is not None and rest > share:
                one = await self._roll_out(graph, instance, trial, rest)
            done.append(one)
            if one.result.outcome == "stopped":
                break  # the training ends, so the others need no second attempt
        if self._cap is not None and any(one.result.unpriced for one in done):
            problem = f"the cost of {self._conditions.model} is not known, so --max-cost cannot be kept: leave it out"
            raise RunStoppedError(problem, failed=False)
        if any(one.result.outcome == "stopped" for one in done):
            problem = f"the training has spent {self.spent:.2f} USD, and its --max-cost allows no further rollout"
            raise RunStoppedError(problem, failed=False)
        if all(one.result.score is None for one in done):
            raise RunStoppedError(f"no rollout was measured: {_why(done[-1].result)}", failed=True)
        self.lost += sum(one.result.outcome in RETRIED_ON_RESUME for one in done)
        return done

    async def _in_turn(self, graph: Swarm, instance: Instance, trial: int) -> tuple[FinishedRollout, float | None]:
        """Return a rollout that had a share of the budget, and that share."""
        async with self._turn:
            while not await self._budget.ready():
                pass
            with self._budget.reserved() as share:
                return await self._roll_out(graph, instance, trial, share), share

    async def _roll_out(self, graph: Swarm, instance: Instance, trial: int, budget: float | None) -> FinishedRollout:
        if budget is not None and budget <= 0:
            return FinishedRollout(Result(id=instance.id, outcome="stopped"), "")
        self._count += 1
        file = self._folder / f"graph-{self._count}.json"
        await asyncio.to_thread(save, graph, file)
        conditions = self._conditions.model_copy(update={"agent": str(file)})
        job = RolloutJob(instance, trial, budget)
        done = await roll_out(conditions, self._benchmark, job, self._folder)
        self._spent += done.result.spent
        if done.result.spent or done.result.score is not None:
            self.dearest = max(self.dearest or 0.0, done.result.spent)
        return done


@asynccontextmanager
async def graph_rollouts(run_plan: RunPlan, workers: int, cap: float | None) -> AsyncGenerator[GraphRollouts]:
    """Yield the rollouts, whose files are in a temporary folder."""
    with rollouts_folder() as folder:
        rollouts = GraphRollouts(run_plan, workers, cap, folder)
        try:
            yield rollouts
        finally:
            await rollouts.model.close()


def _why(result: Result) -> str:
    lines = result.why.strip().splitlines()
    return f"{result.id}: {result.outcome}: {lines[-1] if lines else ''}"


async def train_edges(
    swarm: Swarm, rollouts: GraphRollouts, iterations: int, batch: int, seed: int
) -> AsyncGenerator[Swarm]:
    """Yield the swarm after each iteration until it has had ``iterations`` in all; ``batch`` graphs are drawn in each.

    Every graph gets the next instance; the instances are reshuffled when all have had their turn. The draws depend only
    on the seed and the iteration, so a saved swarm resumes as if it had not stopped. Rollouts that were not measured do
    not count, and the cost so far, as the swarm has it, counts towards the cap. Raises RunStoppedError.
    """
    rollouts.earlier = swarm.training.cost
    while (number := len(swarm.training.iterations)) < iterations:
        random = Random(f"{seed} iteration {number}")
        samples = [draw(swarm, random) for _ in range(batch)]
        instances = _instances(rollouts, seed, number * batch)
        spent = rollouts.spent
        done = await rollouts.run([(sample.swarm, next(instances)) for sample in samples], number + 1)
        scored = [(s.choices, d.result.score) for s, d in zip(samples, done, strict=True) if d.result.score is not None]
        choices, scores = zip(*scored, strict=True)
        swarm = learn(swarm, choices, scores, rollouts.spent - spent)
        yield swarm


def _instances(rollouts: GraphRollouts, seed: int, position: int) -> Iterator[Instance]:
    """Yield the instances from this position on."""
    epoch, place = divmod(position, len(rollouts.instances))
    while True:
        yield from Random(f"{seed} epoch {epoch}").sample(rollouts.instances, len(rollouts.instances))[place:]
        epoch, place = epoch + 1, 0
