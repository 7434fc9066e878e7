"""A process that goes on with a long session until it is killed (by itself at EVENT): long.py FOLDER STEPS [EVENT]."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from handiwork.agents.state import State
from handiwork.events.base import Event
from handiwork.llm.types import Capabilities
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from tests.session.bench import Bench, bash


async def fold(log: EventLog) -> State:
    """The State that the log says."""
    state = State()
    while page := await log.read(after=state.last_id):
        for event in page:
            state.apply(event)
    return state


async def main(folder: Path, steps: int, end: int | None) -> None:
    def watch(item: object) -> None:
        if end is not None and isinstance(item, Event) and item.id >= end:
            os.kill(os.getpid(), signal.SIGKILL)

    async with Store.open(folder / "data") as store, AsyncExitStack() as stack:
        (info,) = await store.sessions()
        log = await store.log(info.id)
        bench = Bench(store, folder / "workspace", stack)
        replies = [bash(f"seq {number} {number + 400}", content="I count.") for number in range(2 * steps)]
        window = Capabilities(window=16_000)
        session = await bench.session(replies, log, watch=watch, capabilities=window, iterations=steps)
        state = await session.run(None if await log.head() else "count")
        assert (state.iteration, state.agent_state) == (steps, "paused"), state.change
        assert await fold(log) == state, "the State of the log is another than that of the session"


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
