"""Processes that run sessions and are killed at random moments: killed.py DATA KILLS SEED SESSION...

Each is forked from this one, which is warm and has a single thread. The first session is run without being killed, to
know how many events that takes; each of the others is killed KILLS times, then run to its end. Prints, a line for each
session, the ids and kinds of the events that its processes were shown, as a JSON list.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, CmdRunAction, ForkAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.record import ApprovalEvent
from handiwork.log.store import Store
from handiwork.session.assemble import reopen

HELPER = f"{__file__}:Helper"


def tally(state: State, numbers: range) -> list[CmdRunAction]:
    """Commands that each add a line of their own to the file the task names."""
    return [CmdRunAction(command=f"echo {state.id}.{number} >> {state.task}") for number in numbers]


class Planner(Agent):
    """Does three things in one reply, delegates between two, has two children work, and finishes."""

    async def step(self, state: State) -> Step:
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


class Helper(Agent):
    """Does two things in one reply, and finishes."""

    async def step(self, state: State) -> Step:
        await self.llm.complete([])
        if len(state.history) == 1:
            return tally(state, range(2))
        return AgentFinishAction(outputs={"content": "helped"})


async def work(data: Path, session: str, pipe: int) -> None:
    """Run the session to its end as its user would, who allows three actions of four; tell the pipe what is shown."""

    def watch(item: Any) -> None:
        if isinstance(item, Event):
            os.write(pipe, f"{json.dumps([item.id, item.kind])}\n".encode())

    async with Store.open(data) as store:
        opened = await reopen(store, data, session, watch)
        state = State()
        for event in await opened.log.read():
            state.apply(event)
        state = await opened.run(None if state.task else str(data / session))
        while state.agent_state == "awaiting_user_confirmation" and state.totals.asked:
            again = State()
            for event in await opened.log.read():
                again.apply(event)
            assert again == state, "the State of the log is another than that of the session"
            for action in list(state.totals.asked):
                await opened.log.append(ApprovalEvent(action=action, allowed=action % 4 > 0, source="user"))
            state = await opened.run()
        assert state.agent_state == "finished", f"{state.agent_state}: {state.change}"
        await opened.close()


def run(data: Path, session: str, killed_at: float | None) -> list[Any]:
    """Fork a process that works on the session and return what it was shown.

    Where it is still at it, it is killed after ``killed_at`` events, the fraction of one being up to 20 ms.
    """
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work(data, session, into))
        except BaseException as error:  # noqa: BLE001 - the process that forked it is told
            sys.stderr.write(f"session {session}: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(3)
        os._exit(0)
    os.close(into)
    lines: list[Any] = []
    with os.fdopen(out) as shown:
        for line in shown:
            lines.append(json.loads(line))
            if killed_at is not None and len(lines) == int(killed_at):
                time.sleep(killed_at % 1 * 0.02)
                os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and status != 0:
        sys.exit(f"session {session} did not come to its end")
    return lines


def main(data: Path, kills: int, chance: random.Random, sessions: list[str]) -> None:
    shown = run(data, sessions[0], None)
    share = len(shown) / kills
    for session in sessions:
        if session != sessions[0]:
            shown = [line for _ in range(kills) for line in run(data, session, 1 + chance.random() * share)]
            shown += run(data, session, None)
        sys.stdout.write(json.dumps(shown) + "\n")
        sys.stdout.flush()  # what is left in the buffer would be written by every fork


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3])), sys.argv[4:])
