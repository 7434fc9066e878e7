"""SwarmAgent: a graph of operations, after GPTSwarm (Zhuge et al., ICML 2024, arXiv:2402.16823)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from handiwork.agents.base import Agent, Step
from handiwork.agents.history import History, is_from_user, is_sent_back, messages_of_user
from handiwork.agents.prompts import render
from handiwork.agents.protocols.ask import UNKNOWN_WINDOW
from handiwork.agents.rendering import shorten
from handiwork.agents.repair.files import may_repeat
from handiwork.agents.state import State
from handiwork.agents.swarm.graph import DECISION, Swarm, default_swarm, load
from handiwork.agents.swarm.operations import NodeRun, perform
from handiwork.events.action import AgentFinishAction, AgentRejectAction, AgentThinkAction, MessageAction
from handiwork.events.base import Action, Observation, Part, utc_now
from handiwork.events.observation import ErrorObservation
from handiwork.llm.errors import EmptyAnswerError, OutputLimitError
from handiwork.llm.types import Message

TEMPERATURE = 0.7
"""The temperature of all nodes but the decision: a vote needs answers that differ."""

SHARE = 2.0
"""Characters of inputs and findings in a prompt for each token of the model's window, about half of it."""


class SwarmInputs(BaseModel):
    """The inputs of a delegation: a swarm as the JSON object of its file; without one, the agent's own."""

    model_config = ConfigDict(extra="forbid")

    task: str
    graph: Swarm | None = None


class SwarmOutputs(BaseModel):
    """The outputs: the final decision."""

    message: str


class SwarmNotes(BaseModel):
    """The agent's data: the graph of this task, and the outputs of the finished nodes.

    ``message`` is the id of the user's message that the outputs answer. ``node`` has been running since event
    ``began``. ``refusal`` is the id of the newest message of a hook that sent the agent back. ``seed`` seeds all random
    choices.
    """

    graph: Swarm | None = None
    seed: int = 0
    message: int = 0
    refusal: int = 0
    node: str = ""
    began: int = 0
    outputs: dict[str, str] = Field(default_factory=dict)


class SwarmAgent(Agent[SwarmNotes]):
    """Runs the nodes of a graph in topological order, one operation in a step or a few; the last decides.

    Uses the edges of a trained swarm whose probability exceeds one half. A node whose model answers nothing twice has
    an empty output. A later message of the user runs the graph again, on the whole conversation. A subclass sets
    another ``swarm``.
    """

    description = "GPTSwarm's way: a graph of operations of several agents, whose edges can be trained, and a decision."
    inputs, outputs = SwarmInputs, SwarmOutputs
    sends_history = False
    swarm: ClassVar[Swarm | None] = None

    async def step(self, state: State[SwarmNotes]) -> Step:
        """Return the next node's output as a thought, the actions that it needs first, or the final decision."""
        notes, graph = state.data, self._graph(state)
        name = next(name for name in graph.order() if name not in notes.outputs)
        if notes.node != name:
            notes.node, notes.began = name, state.last_id
        results = _latest([(a, o) for a, o in state.history if a.id > notes.began and a.source == "agent"])
        if cut := [action for action, observation in results if _is_cut(observation)]:
            return [action.with_fields(timestamp=utc_now(), completion=None) for action in cut]
        inputs = [(source, notes.outputs[source]) for source in graph.inputs_of(name)]
        run = NodeRun(
            node=graph.node(name),
            strategy=graph.strategy,
            task=_task(state),
            inputs=inputs,
            agents={source: graph.node(source).delegate for source, _ in inputs},
            tests=[text for source, text in inputs if graph.node(source).operation == "tests"],
            results=results,
            network=bool(state.totals.network),
            random=Random(f"{notes.seed} {name}"),
        )
        images = [image for message in messages_of_user(state.history) for image in message.images]

        async def ask(run: NodeRun, instruction: str, findings: Sequence[tuple[str, str]]) -> str:
            temperature = 0.0 if run.node.operation == DECISION else TEMPERATURE
            conversation = self._messages(run, instruction, findings, images)
            for one in (temperature, TEMPERATURE):
                with suppress(EmptyAnswerError, OutputLimitError):
                    return (await self.llm.complete(conversation, temperature=one)).content
            return ""

        result = await perform(run, ask)
        if not isinstance(result, str):
            return result
        if name == DECISION and not result:
            return AgentRejectAction(outputs={"reason": "The model gave no answer."})
        if name == DECISION:
            return AgentFinishAction(outputs={"message": result})  # not kept: a hook may ask for another decision
        notes.outputs[name] = result
        return AgentThinkAction(thought=f"{name}: {result}")  # with its name: equal outputs are not a repetition

    def _graph(self, state: State[SwarmNotes]) -> Swarm:
        """Return the graph of the task; a new message of the user restarts it.

        After a hook's refusal the agents of the hub work again, as they alone change files, and all nodes after them.
        """
        notes = state.data
        message = max((message.id for message in messages_of_user(state.history)), default=0)
        if notes.graph is None or notes.message != message:
            swarm = state.inputs_as(SwarmInputs).graph or self.swarm or default_swarm()
            notes.graph, notes.message, notes.node, notes.outputs = swarm.most_probable(), message, "", {}
            notes.seed = notes.seed or secrets.randbits(32)
        refusal = max((action.id for action, _ in state.history if is_sent_back(action)), default=0)
        if refusal > max(message, notes.refusal):
            notes.refusal, kept = refusal, dict[str, str]()
            for name in notes.graph.order()[:-1]:
                is_agent = notes.graph.node(name).operation == "delegate"
                if not is_agent and all(source in kept for source in notes.graph.inputs_of(name)):
                    kept[name] = notes.outputs[name]
            notes.outputs = kept
        return notes.graph

    def _messages(
        self, run: NodeRun, instruction: str, findings: Sequence[tuple[str, str]], images: Sequence[Part]
    ) -> list[Message]:
        """Return a node's prompt; long inputs and findings lose their middle, so that the prompt fits the window."""
        window = self.llm.capabilities.window or UNKNOWN_WINDOW
        limit = int(SHARE * window) // max(1, len(run.inputs) + len(findings))
        text = render(
            "swarm/node",
            examples=run.node.examples,
            inputs=[(name, run.agents[name], shorten(text, limit)) for name, text in run.inputs],
            findings=[(title, shorten(text, limit)) for title, text in findings],
            numbered=run.node.operation == DECISION,
            task=run.task,
        )
        return [Message.text("system", instruction), Message("user", (Part(text=text), *images))]


def _latest(results: History) -> History:
    """Return each action once, with its last result."""
    common = set(Action.model_fields)
    return list({(a.kind, a.model_dump_json(exclude=common)): (a, o) for a, o in results}.values())


def _is_cut(observation: Observation | None) -> bool:
    """Return whether the action has to run again; one that lost the sandbox may be code that ends it each time."""
    is_lost = isinstance(observation, ErrorObservation) and observation.error_id == "sandbox_lost"
    return may_repeat(observation) and not is_lost


def _task(state: State[SwarmNotes]) -> str:
    """Return the user's messages and the decisions between them; of a delegate's inputs, only the task."""
    said: list[str] = []
    for action, _ in state.history:
        if is_from_user(action):
            said.append(action.content if said else state.inputs_as(SwarmInputs).task)
        elif is_sent_back(action):
            said.append(action.content)
        elif isinstance(action, AgentFinishAction):
            said.append(f"You answered:\n\n{action.outputs['message']}")
        elif isinstance(action, MessageAction) and action.source == "agent":  # its finish in plan mode
            said.append(f"You answered:\n\n{action.content}")
    return "\n\n".join(said)


def load_agent(path: Path) -> type[SwarmAgent]:
    """Return the agent of a swarm's file. Raises SwarmError."""
    return type(SwarmAgent.__name__, (SwarmAgent,), {"swarm": load(path), "__doc__": f"SwarmAgent by {path}."})
