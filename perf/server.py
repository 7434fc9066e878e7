"""One server with many sessions: how soon an event is with who follows it, memory, and what a ``kill -9`` loses.

``python -m perf.server [ACTIVE] [IDLE]``: 50 scripted sessions that run commands in sandboxes, each followed by a
WebSocket, beside 200 idle ones that are followed too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from perf import report
from perf.processes import memory
from scripts.harness.serving import Api, Program, bash, finish

ACTIVE, IDLE = 50, 200
STEPS = 25
DELAY = 2.0
"""Seconds that the model takes to answer."""
AT_ONCE = 8
"""Sessions that are made at once."""

Frames = list[tuple[float, str | bytes]]
"""What came over a WebSocket, and when, in seconds since the epoch."""


async def made(api: Api, count: int, *replies: dict[str, Any]) -> list[str]:
    """Begin sessions and return their paths."""
    gate = asyncio.Semaphore(AT_ONCE)
    body = {"task": "work", "workspace": str(api.workspace), "model": api.script(*replies)}

    async def one() -> str:
        async with gate:
            answer = await asyncio.to_thread(api.post, "/api/sessions", **body)
            return f"/api/sessions/{answer['id']}"

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def finished(api: Api, sessions: list[str]) -> None:
    """Wait until all have finished. Raises AssertionError where one does not."""
    for session in sessions:
        await asyncio.to_thread(api.until, session, "finished")


def follow(api: Api, session: str, after: int = 0) -> connect:
    """Return the connection that follows a session."""
    address = f"{api.url.replace('http', 'ws', 1)}{session}/follow?after={after}"
    return connect(address, additional_headers={"Authorization": f"Bearer {api.token}"}, compression=None)


async def received(socket: ClientConnection, frames: Frames) -> None:
    """Keep what comes, until the server is gone."""
    try:
        async for frame in socket:
            frames.append((time.time(), frame))
    except ConnectionClosed:
        pass


def events_of(frames: Frames) -> list[tuple[float, dict[str, Any]]]:
    """Return the events among the frames."""
    found = [(at, json.loads(frame)) for at, frame in frames]
    return [(at, event) for at, event in found if "id" in event]


def delays(kept: list[Frames]) -> list[float]:
    """Return the ms between an event's own time and its frame, ascending."""
    return sorted(
        1000 * (at - datetime.fromisoformat(event["timestamp"]).timestamp())
        for frames in kept
        for at, event in events_of(frames)
    )


async def lost_by(program: Program, sessions: list[str], kept: list[Frames]) -> tuple[int, int]:
    """Kill the server at work and start it again; return how many events were seen before, and how many are gone."""
    await asyncio.to_thread(program.kill)
    await asyncio.sleep(0.5)
    api = await asyncio.to_thread(program.start)
    await finished(api, sessions)
    seen = gone = 0
    for session, frames in zip(sessions, kept, strict=True):
        now = await asyncio.to_thread(api.events, session)
        assert [event["id"] for event in now] == list(range(1, len(now) + 1)), "ids have no gaps"
        before = [event for _, event in events_of(frames)]
        seen += len(before)
        gone += len([event for event in before if event != now[event["id"] - 1]])
    return seen, gone


async def measured(folder: Path, active: int, idle: int) -> None:
    """Measure, and print each figure."""
    program = Program(folder)
    try:
        api = await asyncio.to_thread(program.start)
        process = program.process
        assert process is not None
        print(f"{report.machine()}, load {os.getloadavg()[0]:.1f}; {active} active and {idle} idle sessions")
        await finished(api, await made(api, 1, bash("true"), finish()))  # what is loaded once
        before = memory(process.pid)
        resting = await made(api, idle, finish())
        await finished(api, resting)
        async with AsyncExitStack() as stack:
            for session in resting:
                socket = await stack.enter_async_context(follow(api, session))
                stack.callback(asyncio.create_task(received(socket, [])).cancel)
            after = memory(process.pid)
            print(
                f"server: {before / 1e6:.0f} MB before; idle and followed: {(after - before) / idle / 1e3:.0f} kB each"
            )
            working = await made(api, active, *(bash(f"echo {n}", delay=DELAY) for n in range(STEPS)), finish())
            kept: list[Frames] = [[] for _ in working]
            for session, frames in zip(working, kept, strict=True):
                head = len(await asyncio.to_thread(api.events, session))
                socket = await stack.enter_async_context(follow(api, session, head))
                stack.callback(asyncio.create_task(received(socket, frames)).cancel)
            await asyncio.sleep(STEPS * DELAY / 2)
            load = os.getloadavg()[0]
            seen, gone = await lost_by(program, working, kept)
        took = delays(kept)
        print(
            f"event to frame, of {len(took)} events: p50 {took[len(took) // 2]:.1f} ms, "
            f"p99 {took[int(len(took) * 0.99)]:.1f} ms, at most {took[-1]:.0f} ms; load {load:.1f}"
        )
        print(f"kill -9 while {active} worked: all finished after the restart; lost {gone} of {seen} events seen")
    finally:
        program.close()


def main() -> None:
    """Measure and print."""
    given = [int(argument) for argument in sys.argv[1:]]
    active, idle = [*given, *[ACTIVE, IDLE][len(given) :]]
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measured(Path(folder), active, idle))


if __name__ == "__main__":
    main()
