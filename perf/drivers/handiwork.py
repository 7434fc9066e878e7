"""Drives Handiwork's parts as the drivers of its peers do theirs. Prints one line of JSON.

python -m perf.drivers.handiwork shell FOLDER COUNT          a sandbox: seconds to the end of its first command,
                                                             and of COUNT more
python -m perf.drivers.handiwork resume FOLDER EVENTS RUNS   a session of so many events: seconds to its last page
                                                             and its state, RUNS times
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import JsonValue

from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import CompletionEvent, Limits, SessionStarted, StepStarted
from handiwork.log.store import Store
from handiwork.sandbox import create as sandboxes
from handiwork.workspace.layers import SandboxPaths


async def shell(folder: Path, count: int) -> dict[str, object]:
    async def no_blobs(_: AsyncIterator[bytes]) -> str:
        raise AssertionError("the output is small")

    with tempfile.TemporaryDirectory(dir=folder) as name:
        session, base = Path(name, "session"), Path(name, "session/base")
        base.mkdir(parents=True)
        sandbox = sandboxes.create("bubblewrap", SandboxPaths(session, folder, base), no_blobs)
        try:
            began = time.monotonic()
            await sandbox.start()
            await sandbox.execute(CmdRunAction(command="echo hi"))
            start, echoes = time.monotonic() - began, list[float]()
            for number in range(count):
                began = time.monotonic()
                await sandbox.execute(CmdRunAction(command=f"echo hi {number}"))
                echoes.append(time.monotonic() - began)
        finally:
            await sandbox.close()
    return {"start": start, "echo": echoes}


async def resume(folder: Path, events: int, runs: int) -> dict[str, object]:
    async with Store.open(folder) as store:
        log = await store.create(agent="a", model="m")
        async with log.lease():
            await log.append(SessionStarted(agent="a", model="m", sandbox="none", workspace="/", limits=Limits()))
            while (head := await log.head()) + 4 <= events:
                ids = range(head + 1, min(head + 1000, events - 3), 4)
                await log.append(*(event for first in ids for event in step(first)))
    seconds: list[float] = []
    for _ in range(runs):
        began = time.monotonic()
        async with Store.open(folder) as store:
            log = await store.log(log.id)
            await log.read_back()
            state = State()
            while page := await log.read(after=state.last_id):
                for event in page:
                    state.apply(event)
            seconds.append(time.monotonic() - began)
    return {"seconds": seconds}


def step(first: int) -> list[Event]:
    """Return the events of a step as a session has them, the first with this id."""
    command, call = f"make test-{first}", f"call_{first}"
    calls: list[JsonValue] = [{"id": call, "name": "bash", "arguments": json.dumps({"command": command})}]
    return [
        StepStarted(),
        CompletionEvent(model="m", response={"content": "", "tool_calls": calls, "thinking": []}),
        CmdRunAction(command=command, source="agent", completion=first + 1, tool_call_id=call),
        CmdOutputObservation(command=command, content="ok\n" * 20, exit_code=0, cause=first + 2),
    ]


def main() -> None:
    what, folder, *numbers = sys.argv[1:]
    first, *rest = map(int, numbers)
    found = asyncio.run(shell(Path(folder), first) if what == "shell" else resume(Path(folder), first, *rest))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
