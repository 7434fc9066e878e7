"""Measures how soon an interrupt takes effect in whatever a session is doing; prints a table, in milliseconds."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    ChangeAgentStateAction,
    CmdRunAction,
    ForkAction,
)
from handiwork.events.record import StepStarted
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from handiwork.session.steps.live import OutputDelta, TextDelta

RUNS = 3
STUBBORN = "bash -c 'trap \"\" INT TERM; echo begun; while :; do sleep 1; done'"


class Commander(Agent):
    """Asks the model once, then runs its task as a command."""

    async def step(self, state: State) -> Step:
        await self.llm.complete([])
        return CmdRunAction(command=state.task)


class Blocking(Agent):
    """Asks the model in a plain function."""

    def step(self, state: State) -> Step:
        self.llm.complete([])
        return AgentFinishAction()


class Sleeping(Agent):
    """Does not come back for a minute."""

    def step(self, state: State) -> Step:
        time.sleep(60)
        return AgentFinishAction()


class Looping(Agent):
    """Never comes back."""

    def step(self, state: State) -> Step:
        while True:
            pass


class Delegating(Agent):
    """Hands its task over."""

    def step(self, state: State) -> Step:
        return AgentDelegateAction(agent=f"{__file__}:Commander", inputs={"task": state.task})


class Forking(Agent):
    """Hands its task over to two children at a time."""

    def step(self, state: State) -> Step:
        inputs: dict[str, JsonValue] = {"task": state.task}
        return ForkAction(children=((f"{__file__}:Commander", inputs),) * 2)


@dataclass(frozen=True)
class Situation:
    """What an agent does with a task when it is interrupted: once ``seen`` came from ``times`` places.

    ``delay`` is the seconds before each of the hundred lines of the model's reply.
    """

    agent: str
    seen: type
    times: int = 1
    task: str = "echo begun; sleep 60"
    delay: float = 0.0
    silent: bool = False


SITUATIONS: dict[str, Situation] = {
    "waiting for a server that says nothing": Situation("Commander", StepStarted, silent=True),
    "waiting for the model": Situation("Commander", StepStarted, delay=60),
    "streaming the model's reply": Situation("Commander", TextDelta, delay=1),
    "running a command": Situation("Commander", OutputDelta),
    "running a command that ignores SIGINT and SIGTERM": Situation("Commander", OutputDelta, task=STUBBORN),
    "a blocking step that waits for the model": Situation("Blocking", StepStarted, delay=60),
    "a blocking step that sleeps": Situation("Sleeping", StepStarted),
    "a delegate that waits for the model": Situation("Delegating", StepStarted, 2, delay=60),
    "a delegate that runs a command": Situation("Delegating", OutputDelta),
    "two children that wait for the model": Situation("Forking", StepStarted, 3, delay=60),
    "two children that run commands": Situation("Forking", OutputDelta, 2),
    "two children whose commands ignore signals": Situation("Forking", OutputDelta, 2, task=STUBBORN),
    # The last one: its threads go on to the end of the process and slow down whatever else is measured.
    "a blocking step in an endless loop": Situation("Looping", StepStarted),
}


async def interrupted(name: str, sandbox: Literal["none", "bubblewrap"], folder: Path) -> tuple[State, float]:
    """Interrupt a session in this situation; return its state then, and the seconds it took to stand still."""
    situation = SITUATIONS[name]
    project, script = folder / "project", folder / "script.jsonl"
    project.mkdir()
    reply = json.dumps({"content": "line\n" * 100, "delay": 100 * situation.delay})
    script.write_text(f"{reply}\n" * 4)
    begun: set[int] = set()
    reached = asyncio.Event()

    def watch(item: Any) -> None:
        if isinstance(item, situation.seen):
            begun.add(item.action if isinstance(item, OutputDelta) else getattr(item, "id", 0))
            if len(begun) == situation.times:
                reached.set()

    async with Store.open(folder / "data") as store, silence() as address:
        config = SessionConfig(
            agent=f"{__file__}:{situation.agent}",
            model="silent" if situation.silent else f"scripted:{script}",
            base_url=address if situation.silent else None,
            workspace=str(project),
            sandbox=sandbox,
        )
        opened = await create(store, folder / "data", config, watch, name)
        try:
            running = asyncio.create_task(opened.run(situation.task))
            await asyncio.wait({running, asyncio.create_task(reached.wait())}, return_when=asyncio.FIRST_COMPLETED)
            begin = time.monotonic()
            await opened.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
            state = await running
            return state, time.monotonic() - begin
        finally:
            await opened.close()


@asynccontextmanager
async def silence() -> AsyncGenerator[str]:
    """Serve an address where every request is taken and none answered."""

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", choices=["none", "bubblewrap"], default="bubblewrap")
    parser.add_argument("--only", choices=list(SITUATIONS), help="one situation, once")
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else SITUATIONS:
        times: list[float] = []
        for _ in range(1 if arguments.only else RUNS):
            with tempfile.TemporaryDirectory() as folder:
                state, seconds = asyncio.run(interrupted(name, arguments.sandbox, Path(folder)))
            if state.agent_state != "paused":
                sys.exit(f"{name}: it is {state.agent_state} instead of paused: {state.change}")
            times.append(1000 * seconds)
        print(f"{name:55} {statistics.median(times):7.0f} {min(times):7.0f} {max(times):7.0f}", flush=True)


if __name__ == "__main__":
    main()
