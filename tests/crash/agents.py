"""Agents whose commands each leave one line in the file that the task names, and that count their steps."""

from __future__ import annotations

from pydantic import BaseModel

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, CmdRunAction, ForkAction, MessageAction

PLANNER, HELPER, ASKER = (f"{__file__}:{name}" for name in ("Planner", "Helper", "Asker"))


class Count(BaseModel):
    steps: int = 0


def tally(state: State[Count], numbers: range) -> list[CmdRunAction]:
    """Commands that each add a line of their own to the file the task names."""
    return [CmdRunAction(command=f"echo {state.id}.{number} >> {state.task}") for number in numbers]


class Planner(Agent[Count]):
    """Does three things in one reply, delegates between two, has two children work, and finishes."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        await self.llm.complete([])
        helped = AgentDelegateAction(agent=HELPER, inputs={"task": state.task})
        match sum(not isinstance(action, MessageAction) for action, _ in state.history):
            case 0:
                return tally(state, range(3))
            case 3:
                return [*tally(state, range(3, 4)), helped, *tally(state, range(4, 5))]
            case 6:
                return ForkAction(children=((HELPER, helped.inputs),) * 2)
            case _:
                return AgentFinishAction(outputs={"message": "done"})


class Helper(Agent[Count]):
    """Does two things in one reply, and finishes."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        await self.llm.complete([])
        if len(state.history) == 1:
            return tally(state, range(2))
        return AgentFinishAction(outputs={"content": "helped"})


class Asker(Agent[Count]):
    """Does two things in one reply, one in the next, and finishes."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        await self.llm.complete([])
        match len(state.history):
            case 1:
                return tally(state, range(2))
            case 3:
                return tally(state, range(2, 3))
            case _:
                return AgentFinishAction(outputs={"message": "done"})
