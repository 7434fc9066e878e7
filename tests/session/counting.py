"""A process that goes on with the session of a counter: counting.py FOLDER [EVENT KIND].

It kills itself at the first event of the kind, or of any kind if that is "Event", that is not before EVENT.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pydantic import BaseModel

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, CmdRunAction, ForkAction
from handiwork.events.base import Event
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create, reopen

HERE = "tests.session.counting"


class Count(BaseModel):
    steps: int = 0


class Leaf(Agent[Count]):
    """Returns one action a step, and counts its steps; nothing else tells it where it is."""

    def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        if state.data.steps == 4:
            return AgentFinishAction(outputs={"steps": state.data.steps})
        return CmdRunAction(command=f"echo {state.data.steps}")


class Root(Agent[Count]):
    """The same, with a delegate and two children."""

    def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        match state.data.steps:
            case 2:
                return AgentDelegateAction(agent=f"{HERE}:Leaf", inputs={"task": "count"})
            case 4:
                return ForkAction(children=((f"{HERE}:Leaf", {"task": "count"}),) * 2)
            case 6:
                return AgentFinishAction(outputs={"steps": state.data.steps})
            case number:
                return CmdRunAction(command=f"echo {number}")


async def main(folder: Path, end: int | None = None, kind: str = "Event") -> None:
    def watch(item: object) -> None:
        if end is not None and isinstance(item, Event) and item.id >= end and kind in ("Event", item.kind):
            os.kill(os.getpid(), signal.SIGKILL)

    data, project = folder / "data", folder / "project"
    project.mkdir(exist_ok=True)
    async with Store.open(data) as store:
        if known := await store.sessions():
            session = await reopen(store, data, known[0].id, watch)
            message = None
        else:
            config = SessionConfig(
                agent=f"{HERE}:Root", model=f"scripted:{os.devnull}", sandbox="none", workspace=str(project)
            )
            session = await create(store, data, config, watch, "a test")
            message = "count"
        async with session.hold_lease():
            state = await session.run(message)
        assert (state.agent_state, state.outputs) == ("finished", {"steps": 6}), state.change


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:3]), *sys.argv[3:]))
