"""A family of tasks on which truthful agents are right and adversarial agents are wrong, and a model that plays both.

The best graph is known: only truthful agents are heard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handiwork.agents.state import State
from handiwork.agents.swarm import SwarmAgent, SwarmNotes
from handiwork.agents.swarm.graph import ADVERSARIAL, Swarm
from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.events.action import AgentFinishAction, AgentThinkAction, MessageAction
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities, Completion, Message
from tests.llm.standin import Json, Refusal, StandIn, Stream, answer

TASK = re.compile(r"The letter is ([A-Z!])\.")
TEAM = ("io", "io", "adversarial", "adversarial", "adversarial")


class Letters(Benchmark):
    """The answer is the letter that the task names."""

    name = "letters"
    title = "Letters"
    size = "as many as there are"
    source = "this file"
    licence = "MIT"
    citation = ""

    def files(self, split: str) -> Mapping[str, str]:
        return {"letters.json": ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        return [Instance(letter, {"letter": letter}) for letter in json.loads((data / "letters.json").read_text())]

    def instruction(self, instance: Instance) -> str:
        return f"The letter is {instance.row['letter']}. Which letter is it?"

    async def score(self, rollout: Rollout) -> Score:
        if not rollout.instance.id.isalpha():
            raise ValueError(f"{rollout.instance.id!r} is no letter")
        said = rollout.final_message.strip().rpartition("\n")[2]
        return Score(float(said == rollout.instance.row["letter"]), said)


def reply(instruction: str, prompt: str) -> str:
    """What a member of the team says by its instruction.

    An adversarial one says "wrong". A truthful one says the letter, unless more of those it hears say "wrong".
    """
    letter, lines = TASK.findall(prompt)[-1], prompt.splitlines()
    is_misled = lines.count("wrong") > lines.count(letter)
    return f"I am sure of it:\n{'wrong' if instruction == ADVERSARIAL or is_misled else letter}"


class TeamServer(StandIn):
    """The team's model behind a server."""

    def _answer(self, messages: list[Json], *, chat: bool) -> Refusal | Stream:
        instruction, prompt = (str(message["content"]) for message in messages)
        return answer(Reply(content=reply(instruction, prompt)), 0)


class TeamLLM:
    """The team's model as agents get it."""

    capabilities = Capabilities()

    async def complete(self, messages: Sequence[Message], **_: Any) -> Completion:
        instruction, prompt = ("".join(part.text or "" for part in message.content) for message in messages)
        return Completion(content=reply(instruction, prompt))


async def play(swarm: Swarm, letter: str) -> float:
    """Let SwarmAgent do the task of a letter on this graph, step by step, and return its score."""
    agent = type("Player", (SwarmAgent,), {"swarm": swarm})(TeamLLM())
    state: State[SwarmNotes] = State(data=SwarmNotes(seed=1))
    state.apply(MessageAction(content=f"The letter is {letter}. Which letter is it?", source="user", id=1))
    for number in range(2, 100):
        action = await agent.step(state)
        if isinstance(action, AgentFinishAction):
            return float(str(action.outputs["message"]).rpartition("\n")[2] == letter)
        assert isinstance(action, AgentThinkAction)
        state.apply(action.with_fields(id=number))
    raise AssertionError("the agent does not come to an end")
