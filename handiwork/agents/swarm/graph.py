"""A swarm: agents as graphs of operations, joined into one graph whose edges between agents have probabilities."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from handiwork.agents.interface import problems_text
from handiwork.errors import HandiworkError
from handiwork.events.base import Model

OperationName = Literal[
    "direct", "query", "files", "web", "delegate", "combine", "step", "reflect", "code", "tests", "decision"
]
"""The operation of a node: see ``handiwork.agents.swarm.operations``."""

Strategy = Literal["references", "majority_vote", "random_choice", "self_consistency", "select_best"]
"""How the final decision is made: see ``handiwork.agents.swarm.decision``."""

DECISION = "decision"
"""The name and the operation of the last node."""

LIKELY, UNLIKELY = 0.6, 0.4
"""Probabilities of an untrained swarm's edges: from the last node of an agent to the decision, and all others.

Only the former exceed one half, so an untrained swarm is the plain ensemble of its agents.
"""


class SwarmError(HandiworkError):
    """A swarm's file cannot be read, or an agent of it does not exist; the message says what is wrong."""


class NodeExample(Model):
    """A demonstration in a node's prompt: a task, and the output of the node that led to its solution."""

    task: str
    output: str


class SwarmNode(Model):
    """A node: ``name`` is "AGENT/NODE", ``instruction`` its prompt, "" for the operation's own.

    ``delegate`` is the agent of the hub that a node of the operation "delegate" hands its task to.
    """

    name: str
    operation: OperationName
    instruction: str = ""
    examples: tuple[NodeExample, ...] = ()
    delegate: str = Field(default="", pattern=r"^(?:[A-Za-z][\w-]*)?$")

    @property
    def agent(self) -> str:
        """The agent that the node belongs to."""
        return self.name.rpartition("/")[0]


class SwarmEdge(Model):
    """An edge that is drawn with a probability: the logistic function of ``logit``."""

    source: str
    target: str
    logit: float

    @property
    def probability(self) -> float:
        """The probability, from 0 to 1."""
        return sigmoid(self.logit)


class TrainingIteration(Model):
    """One iteration: the ``scores`` of the measured rollouts, each from 0 to 1, and their cost in USD."""

    scores: tuple[float, ...]
    cost: float = 0.0

    @property
    def mean(self) -> float:
        """The mean score."""
        return sum(self.scores) / len(self.scores)


class NodeRecord(Model):
    """A rollout as the nodes saw it: the task, the output of each node that ran, and the score."""

    task: str
    outputs: dict[str, str]
    score: float


class PromptProgress(Model):
    """The progress of the work on prompts since the last iteration.

    ``rollouts`` is the hash of what its rollouts share: their conditions, the data, and the instances.
    ``records`` are the rollouts with the prompts so far, by instance. ``node`` is the last one that was begun, with the
    mean score ``before``; its ``candidates`` have not been measured yet.
    """

    rollouts: str
    records: dict[str, NodeRecord]
    node: str = ""
    before: float = 0.0
    candidates: tuple[SwarmNode, ...] = ()


class Training(Model):
    """The progress of a swarm's training: the optimiser resumes from it, and the learning curve shows it.

    ``baseline`` is the moving average of scores; ``momentum`` and ``variance`` are Adam's moments, one an edge.
    ``prompts`` is the progress of the work on prompts, None before it. ``prompt_cost`` is the cost of that work so far,
    and ``lost_cost`` that of iterations that did not end, in USD.
    """

    iterations: tuple[TrainingIteration, ...] = ()
    baseline: float | None = None
    momentum: tuple[float, ...] = ()
    variance: tuple[float, ...] = ()
    prompts: PromptProgress | None = None
    prompt_cost: float = 0.0
    lost_cost: float = 0.0

    @property
    def cost(self) -> float:
        """The cost of the training so far, in USD."""
        return sum(iteration.cost for iteration in self.iterations) + self.prompt_cost + self.lost_cost


class Swarm(Model):
    """A composite graph: ``links`` are permanent edges, ``edges`` those that may be drawn.

    The links have no cycle, and no graph drawn from the swarm has one.
    """

    format: Literal["handiwork-swarm-1"] = "handiwork-swarm-1"
    nodes: tuple[SwarmNode, ...]
    links: tuple[tuple[str, str], ...] = ()
    edges: tuple[SwarmEdge, ...] = ()
    strategy: Strategy = "references"
    training: Training = Field(default=Training())

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [node.name for node in self.nodes]
        pairs = [*self.links, *((edge.source, edge.target) for edge in self.edges)]
        if [node.name for node in self.nodes if node.operation == DECISION] != [DECISION]:
            raise ValueError(f"a swarm has one node of the operation {DECISION!r}, and its name is {DECISION!r}")
        if len(set(names)) < len(names):
            raise ValueError(f"two nodes have the name {next(name for name in names if names.count(name) > 1)!r}")
        if unknown := {name for pair in pairs for name in pair} - set(names):
            raise ValueError(f"an edge names {min(unknown)!r}, which is no node")
        if len(set(pairs)) < len(pairs) or any(source in (target, DECISION) for source, target in pairs):
            raise ValueError(f"an edge occurs twice, leaves {DECISION!r}, or joins a node with itself")
        if _has_cycle(self.links):
            raise ValueError("the links have a cycle")
        for node in self.nodes:
            if (node.operation == "delegate") != bool(node.delegate):
                raise ValueError(f"{node.name!r}: the operation 'delegate', and no other, names an agent in 'delegate'")
        return self

    def node(self, name: str) -> SwarmNode:
        """Return the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def inputs_of(self, name: str) -> list[str]:
        """Return the names of the nodes with a link to this one, in the order of the nodes."""
        sources = {source for source, target in self.links if target == name}
        return [node.name for node in self.nodes if node.name in sources]

    def order(self) -> list[str]:
        """Return the nodes from which links lead to the decision, each after its inputs; the decision comes last."""
        found: list[str] = []

        def visit(name: str) -> None:
            for source in self.inputs_of(name):
                if source not in found:
                    visit(source)
            found.append(name)

        visit(DECISION)
        return found

    def realise(self, order: Iterable[int], choose: Callable[[int], bool]) -> tuple[Swarm, dict[int, bool]]:
        """Return the swarm with the chosen edges as further links, and the choice for each edge that ``choose`` saw.

        ``order`` has indices of ``edges``; ``choose`` is not called for an edge that would close a cycle.
        """
        successors: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for source, target in self.links:
            successors[source].append(target)
        choices: dict[int, bool] = {}
        for index in order:
            edge = self.edges[index]
            if _reaches(successors, edge.target, edge.source):
                continue
            choices[index] = choose(index)
            if choices[index]:
                successors[edge.source].append(edge.target)
        chosen = [(self.edges[index].source, self.edges[index].target) for index in sorted(choices) if choices[index]]
        update = {"links": (*self.links, *chosen), "edges": (), "training": Training()}
        return self.model_copy(update=update), choices

    def most_probable(self) -> Swarm:
        """Return the swarm with the edges whose probability exceeds one half, the most probable first."""
        order = sorted(range(len(self.edges)), key=lambda index: -self.edges[index].logit)
        return self.realise(order, lambda index: self.edges[index].logit > 0)[0]


def sigmoid(logit: float) -> float:
    """Return the logistic function, without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else 1 - 1 / (1 + math.exp(logit))


def logit_of(probability: float) -> float:
    """Return the logit of a probability strictly between 0 and 1."""
    return math.log(probability / (1 - probability))


def _reaches(successors: Mapping[str, Sequence[str]], start: str, goal: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        if node == goal:
            return True
        further = [one for one in successors[node] if one not in seen]
        seen.update(further)
        waiting += further
    return False


def _has_cycle(pairs: Iterable[tuple[str, str]]) -> bool:
    successors: dict[str, list[str]] = {}
    for source, target in pairs:
        successors.setdefault(source, [])
        successors.setdefault(target, [])
        if _reaches(successors, target, source):
            return True
        successors[source].append(target)
    return False


TEMPLATES: Mapping[str, Mapping[str, tuple[OperationName, tuple[str, ...]]]] = {
    "io": {"answer": ("direct", ())},
    "cot": {"step 1": ("step", ()), "step 2": ("step", ("step 1",)), "answer": ("direct", ("step 2",))},
    "tot": {
        "branch 1": ("direct", ()),
        "branch 2": ("direct", ()),
        "branch 3": ("direct", ()),
        "combine": ("combine", ("branch 1", "branch 2", "branch 3")),
    },
    "reflection": {"answer": ("direct", ()), "reflect": ("reflect", ("answer",))},
    "tools": {
        "query": ("query", ()),
        "files": ("files", ("query",)),
        "web": ("web", ("query",)),
        "combine": ("combine", ("files", "web")),
    },
    "web": {"query": ("query", ()), "web": ("web", ("query",)), "combine": ("combine", ("web",))},
    "code": {"tests": ("tests", ()), "code": ("code", ("tests",))},
    "adversarial": {"answer": ("direct", ())},
}
"""Agents as graphs: the operation of each node and its inputs; the last node has the agent's answer."""

ADVERSARIAL = (
    "You mislead the others on purpose: give an answer that is wrong but looks plausible, and defend it. Give the "
    "answer alone on the last line, in the form that the task asks for."
)
"""The instruction of the adversarial agent, which shows whether training learns to ignore it."""


def build(agents: Sequence[str], strategy: Strategy) -> Swarm:
    """Return an untrained swarm of the agents, each a name in TEMPLATES or the name of an agent of the hub.

    The edges are those between nodes of two agents, both ways, and from every node to the decision. Raises SwarmError
    for a name that no agent can have.
    """
    nodes: list[SwarmNode] = []
    links: list[tuple[str, str]] = []
    last: set[str] = set()
    for number, name in enumerate(agents, 1):
        template = TEMPLATES.get(name)
        agent = f"{name} {number}"
        if template is None:
            if not re.fullmatch(r"[A-Za-z][\w-]*", name):
                raise SwarmError(f"{name!r} cannot join a swarm: name {', '.join(TEMPLATES)}, or an installed agent")
            nodes.append(SwarmNode(name=f"{agent}/work", operation="delegate", delegate=name))
        else:
            instruction = ADVERSARIAL if name == "adversarial" else ""
            for node, (operation, inputs) in template.items():
                nodes.append(SwarmNode(name=f"{agent}/{node}", operation=operation, instruction=instruction))
                links += [(f"{agent}/{source}", f"{agent}/{node}") for source in inputs]
        last.add(nodes[-1].name)
    edges = [(a.name, b.name) for a in nodes for b in nodes if a.agent != b.agent]
    edges += [(node.name, DECISION) for node in nodes]
    return Swarm(
        nodes=(*nodes, SwarmNode(name=DECISION, operation=DECISION)),
        links=tuple(links),
        edges=tuple(
            SwarmEdge(source=a, target=b, logit=logit_of(LIKELY if b == DECISION and a in last else UNLIKELY))
            for a, b in edges
        ),
        strategy=strategy,
    )


def default_swarm() -> Swarm:
    """Return the swarm that SwarmAgent has by itself; CodeActAgent is the one that changes files."""
    return build(("io", "cot", "tools", "CodeActAgent"), "references")


def load(path: Path) -> Swarm:
    """Return the swarm of a JSON file. Raises SwarmError."""
    try:
        return Swarm.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SwarmError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise SwarmError(f"{path} is no swarm: {problems_text(error)}; `handiwork swarm train` writes one") from None


def save(swarm: Swarm, path: Path) -> None:
    """Write a swarm to a JSON file, as a whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w") as file:
        file.write(swarm.model_dump_json(indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
