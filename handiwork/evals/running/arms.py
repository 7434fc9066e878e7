"""The arms of an evaluation that need no model: "oracle" gives the reference solution, "empty" gives nothing.

They show whether a benchmark tells right from wrong on this machine. An arm is named in place of an agent, and its
rollouts are those of any agent: the same sandbox, set-up and scorer.
"""

from __future__ import annotations

import json

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.evals.benchmark import Benchmark, DataError, Instance
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.events.codec import from_json, to_json
from handiwork.events.record import AgentDataEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import LLM
from handiwork.sandbox.base import Sandbox

ORACLE, EMPTY = "oracle", "empty"
ARMS = (ORACLE, EMPTY)


class ReferenceAgent(Agent):
    """Ends every turn with the action that its rollout has put into its data; it calls no model."""

    async def step(self, state: State) -> Action:
        """Return that action."""
        action = from_json(json.dumps(state.extra_data))
        if not isinstance(action, Action):
            raise TypeError(f"the arm's data are a {action.kind}, not an action")
        return action


def agent_of(name: str) -> str:
    """Return the name of the agent that runs in the sessions of an agent or arm."""
    return f"{__name__}:{ReferenceAgent.__name__}" if name in ARMS else name


def model_of(agent: str) -> LLM | None:
    """Return the model of an arm, which answers nothing; None for an agent, which has the run's model."""
    return ScriptedLLM((), "none") if agent in ARMS else None


def check(benchmark: Benchmark, agent: str) -> None:
    """Raise DataError if the agent is the oracle and the benchmark has no reference solutions."""
    if agent == ORACLE and not has_references(benchmark):
        raise DataError(
            f"{benchmark.name} has no reference solutions, as its docstring explains: --agent oracle cannot run it"
        )


def has_references(benchmark: Benchmark) -> bool:
    """Return whether the benchmark gives reference solutions."""
    return type(benchmark).solve is not Benchmark.solve


async def work(arm: str, benchmark: Benchmark, instance: Instance, sandbox: Sandbox) -> AgentDataEvent:
    """Do an arm's work in a sandbox that is set up; return the data of its agent.

    Raises UnfitError, SandboxError.
    """
    finish = AgentFinishAction(outputs={"message": ""})
    end = await benchmark.solve(instance, sandbox) if arm == ORACLE else finish
    return AgentDataEvent(data=json.loads(to_json(end)))
