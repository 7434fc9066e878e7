"""The commands of ``handiwork swarm``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from handiwork.agents.registry import find
from handiwork.agents.swarm.graph import Strategy, Swarm, build, load, save
from handiwork.agents.swarm.svg import draw_graph, draw_learning_curve
from handiwork.cli.commands.eval.commands import EvalRequest, conditions_of
from handiwork.cli.errors import say
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.evals.running import plan
from handiwork.evals.running.plan import InstanceSelection, RunPlan
from handiwork.evals.running.run import RunStoppedError
from handiwork.evals.training.edges import GraphRollouts, graph_rollouts, train_edges
from handiwork.evals.training.instructions import improve_instructions
from handiwork.settings import SettingsError

AGENTS = ("io", "cot", "tools")
"""The agents of a new swarm by default."""


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """The arguments of ``handiwork swarm train`` that are about the training; ``max_cost`` is in USD."""

    out: Path
    agents: Sequence[str] | None
    strategy: Strategy | None
    iterations: int
    batch: int
    improve: bool
    seed: int
    workers: int
    max_cost: float | None


def train(request: EvalRequest, flags: Mapping[str, Any], training: TrainingRequest) -> Exit:
    """Train a new swarm or the one in the file, and draw it.

    Raises SettingsError, SwarmError, AgentNotFoundError, DataError, SandboxError, BenchmarkNotFoundError.
    """
    if training.out.suffix != ".json":
        raise SettingsError(f"{training.out}: the name of a swarm's file ends with .json")
    if training.agents is not None and not training.agents:
        raise SettingsError("--agents names no agent")
    if training.out.exists():
        swarm = load(training.out)
        _check_options(swarm, training)
        done = len(swarm.training.iterations)
        say(f"continuing the swarm in {training.out}: it has had {done} of {training.iterations} iterations")
    else:
        swarm = build(training.agents or AGENTS, training.strategy or "references")
    for node in swarm.nodes:
        if node.delegate:
            find(node.delegate)
    benchmark, conditions = conditions_of(request, flags)
    selection = InstanceSelection(request.limit, request.ids)
    run_plan = asyncio.run(plan.new(benchmark, conditions, selection, 1, say))
    training.out.parent.mkdir(parents=True, exist_ok=True)
    save(swarm, training.out)
    try:
        lost = asyncio.run(_train(swarm, run_plan, training))
    except RunStoppedError as stopped:
        say(f"{stopped}; the same command continues {training.out}")
        return Exit.INFRASTRUCTURE if stopped.failed else Exit.LIMIT
    except KeyboardInterrupt:
        say(f"stopped; the same command continues {training.out}")
        return Exit.INTERRUPTED
    finally:
        draw(training.out)
    if lost:
        say(f"{lost} of the rollouts failed through no fault of the agent, and did not count")
    return Exit.INFRASTRUCTURE if lost else Exit.FINISHED


def _check_options(swarm: Swarm, training: TrainingRequest) -> None:
    """Raise SettingsError for --agents or --strategy other than the swarm's: they would have no effect."""
    given = build(training.agents or (), training.strategy or swarm.strategy)
    others = [node.name for node in given.nodes] != [node.name for node in swarm.nodes]
    if (training.agents and others) or given.strategy != swarm.strategy:
        problem = "is not the one of --agents and --strategy: leave them out, or name another --out"
        raise SettingsError(f"the swarm in {training.out} {problem}")


async def _train(swarm: Swarm, run_plan: RunPlan, training: TrainingRequest) -> int:
    """Train the swarm; return the number of rollouts that failed through no fault of the agent."""
    async with graph_rollouts(run_plan, training.workers, training.max_cost) as rollouts:
        trained = await _train_edges(swarm, rollouts, training)
        if training.improve:
            await _improve(trained, rollouts, training.out)
        return rollouts.lost


_ROUNDING = 1e-9


async def _train_edges(swarm: Swarm, rollouts: GraphRollouts, training: TrainingRequest) -> Swarm:
    """Train the edges, save the swarm after each iteration, and return it."""
    iterations = train_edges(swarm, rollouts, training.iterations, training.batch, training.seed)
    try:
        async with aclosing(iterations):
            async for trained in iterations:
                swarm = trained
                save(swarm, training.out)
                done = swarm.training.iterations
                recent = [iteration.mean for iteration in done[-10:]]
                _tell(
                    f"iteration {len(done)} of {training.iterations}: score {done[-1].mean:.2f}, "
                    f"mean of the last {len(recent)} {sum(recent) / len(recent):.2f}, {rollouts.spent:.2f} USD"
                )
    finally:
        if (lost := rollouts.spent - swarm.training.cost) > _ROUNDING:  # an iteration that was stopped has spent it
            so_far = swarm.training.model_copy(update={"lost_cost": swarm.training.lost_cost + lost})
            save(swarm.model_copy(update={"training": so_far}), training.out)
    return swarm


async def _improve(swarm: Swarm, rollouts: GraphRollouts, out: Path) -> None:
    """Improve the nodes' prompts, and save the swarm with the cost after each pass and at the end."""
    before, latest = rollouts.spent - swarm.training.prompt_cost, swarm

    def keep(swarm: Swarm) -> None:
        nonlocal latest
        latest = swarm
        training = swarm.training.model_copy(update={"prompt_cost": rollouts.spent - before})
        save(swarm.model_copy(update={"training": training}), out)

    try:
        async with aclosing(improve_instructions(swarm, rollouts, keep)) as nodes:
            improved = None
            async for improved in nodes:
                _tell(f"{improved.node}: score {improved.before:.2f}, now {improved.score:.2f}")
        if improved is None:
            _tell("no prompt is left to improve on these instances")
    finally:
        keep(latest)  # a training that was stopped has spent it too


def draw(file: Path) -> Exit:
    """Draw the swarm of a file, and its learning curve if it was trained. Raises SwarmError."""
    swarm = load(file)
    pictures = {".svg": draw_graph(swarm)}
    if swarm.training.iterations:
        pictures["-learning.svg"] = draw_learning_curve(swarm)
    for ending, picture in pictures.items():
        path = file.with_name(file.stem + ending)
        path.write_text(picture)
        _tell(f"drawn: {path}")
    return Exit.FINISHED


def _tell(text: str) -> None:
    terminal_console().print(Text(plain(text)), soft_wrap=True)
