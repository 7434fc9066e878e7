"""Improves the prompts of a swarm's nodes: the model criticises failures and rewrites, and rollouts choose."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from handiwork.agents.prompts import render
from handiwork.agents.state import State
from handiwork.agents.swarm.decision import asks_model, takes_examples
from handiwork.agents.swarm.graph import DECISION, NodeExample, NodeRecord, PromptProgress, Swarm, SwarmNode
from handiwork.agents.swarm.operations import instruction_of
from handiwork.evals.running.rollout import FinishedRollout
from handiwork.evals.training.edges import GraphRollouts
from handiwork.events.codec import from_json

MOST = 4
"""Failures that are criticised and examples that are shown, as in GPTSwarm."""


@dataclass(frozen=True)
class ImprovedSwarm:
    """The swarm after the work on ``node``: its mean ``score``, and the score ``before``, over measured instances."""

    swarm: Swarm
    node: str
    before: float
    score: float


async def improve_instructions(
    swarm: Swarm, rollouts: GraphRollouts, keep: Callable[[Swarm], None]
) -> AsyncGenerator[ImprovedSwarm]:
    """Yield the swarm after the work on each node of its most probable graph, in the graph's order.

    A node keeps its prompt unless another has a higher mean score over the instances that both measured. The others are
    its instruction or one that the model rewrites after its critique of MOST failures, with its examples or MOST of its
    outputs in rollouts that succeeded. Costs at most three passes over the instances for each node. ``keep`` is called
    with the swarm after each pass: from there the work resumes under the same conditions. Raises RunStoppedError,
    LLMError.
    """
    progress = swarm.training.prompts
    if progress is None or progress.rollouts != rollouts.hash:
        progress = PromptProgress(rollouts=rollouts.hash, records=await _measure(swarm, rollouts))
        keep(_with_progress(swarm, progress))
    order = swarm.most_probable().order()
    for name in order[order.index(progress.node) if progress.node in order else 0 :]:
        if name != progress.node:
            node, records = swarm.node(name), progress.records.values()
            if not asks_model(node, swarm.strategy) or _mean(records) == 1:
                continue
            candidates = tuple(await _candidates(node, swarm, list(records), rollouts))
            progress = progress.model_copy(update={"node": name, "before": _mean(records), "candidates": candidates})
            keep(_with_progress(swarm, progress))
        elif not progress.candidates:
            continue
        while progress.candidates:
            other = _with_node(swarm, progress.candidates[0])
            measured = await _measure(other, rollouts)
            update: dict[str, object] = {"candidates": progress.candidates[1:]}
            if _is_better(measured, progress.records):
                swarm, update["records"] = other, measured
            progress = progress.model_copy(update=update)
            keep(_with_progress(swarm, progress))
        yield ImprovedSwarm(swarm, name, progress.before, _mean(progress.records.values()))


async def _measure(swarm: Swarm, rollouts: GraphRollouts) -> dict[str, NodeRecord]:
    """Return the measured rollouts of the most probable graph by instance."""
    graph = swarm.most_probable()
    return {
        one.result.id: _record(one, one.result.score)
        for one in await rollouts.run([(graph, instance) for instance in rollouts.instances])
        if one.result.score is not None
    }


def _record(rollout: FinishedRollout, score: float) -> NodeRecord:
    state = State()
    for line in rollout.trajectory.splitlines():
        state.apply(from_json(line))
    outputs = state.extra_data.get("outputs")
    texts = {name: str(text) for name, text in outputs.items()} if isinstance(outputs, dict) else {}
    if "message" in state.outputs:  # the agent's notes do not keep the decision
        texts[DECISION] = str(state.outputs["message"])
    return NodeRecord(task=state.task, outputs=texts, score=score)


def _is_better(new: Mapping[str, NodeRecord], old: Mapping[str, NodeRecord]) -> bool:
    """Return whether the mean score has risen over the instances that both measured, if there are any."""
    both = new.keys() & old.keys()
    return bool(both) and _mean(new[one] for one in both) > _mean(old[one] for one in both)


def _mean(records: Iterable[NodeRecord]) -> float:
    scores = [record.score for record in records]
    return sum(scores) / len(scores)


async def _candidates(
    node: SwarmNode, swarm: Swarm, records: Sequence[NodeRecord], rollouts: GraphRollouts
) -> list[SwarmNode]:
    """Return the node with the other prompts."""
    old = instruction_of(node, swarm.strategy)
    ran = [record for record in records if node.name in record.outputs]
    failures = [record for record in ran if record.score < 1][:MOST]
    successes = [r for r in ran if r.score == 1][:MOST] if takes_examples(node, swarm.strategy) else []
    examples = tuple(NodeExample(task=record.task, output=record.outputs[node.name]) for record in successes)
    instructions, demonstrations = [node.instruction], [node.examples]
    if failures:
        critiques = [
            await rollouts.model.ask(
                render("swarm/critique", instruction=old, task=record.task, output=record.outputs[node.name])
            )
            for record in failures
        ]
        rewritten = await rollouts.model.ask(render("swarm/rewrite", instruction=old, critiques=critiques))
        instructions.append(rewritten.strip())
    if examples:
        demonstrations.append(examples)
    pairs = list(product(instructions, demonstrations))[1:]
    return [node.model_copy(update={"instruction": i, "examples": e}) for i, e in pairs if i or not node.instruction]


def _with_progress(swarm: Swarm, progress: PromptProgress) -> Swarm:
    return swarm.model_copy(update={"training": swarm.training.model_copy(update={"prompts": progress})})


def _with_node(swarm: Swarm, node: SwarmNode) -> Swarm:
    nodes = tuple(node if one.name == node.name else one for one in swarm.nodes)
    return swarm.model_copy(update={"nodes": nodes})
