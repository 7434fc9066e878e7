"""kill -9 at random events: an agent that counts its steps has counted those that the log has, and no other."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from handiwork.events.base import Action
from handiwork.events.record import AgentDataEvent
from handiwork.log.store import Store

KILLS = 6
EVENTS = 90
"""About as many as the log has in the end."""


@pytest.mark.slow
async def test_the_count_is_that_of_the_recorded_steps_after_every_kill(tmp_path: Path) -> None:
    chance = random.Random(seed := random.randrange(10**9))
    head = 0
    for kill in range(KILLS + 1):
        event = str(head + chance.randrange(1, 2 * EVENTS // KILLS))
        # Between the data and the action would be the worst moment: every other kill is at the data.
        end = [event, ("AgentDataEvent", "Event")[kill % 2]] if kill < KILLS else []
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.session.counting", str(tmp_path), *end), stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate()
        kept, recorded, head = await counts(tmp_path / "data")
        assert kept == recorded, f"seed {seed}, kill {kill}"
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, f"seed {seed}: {errors.decode()}"
    assert process.returncode == 0
    assert sorted(recorded.values()) == [4, 4, 4, 6]


async def counts(data: Path) -> tuple[dict[int, int], dict[int, int], int]:
    """Return what the agents have counted, the number of their actions, each by subtask, and the number of events."""
    async with Store.open(data) as store:
        (info,) = await store.sessions()
        events = await (await store.log(info.id)).read()
    kept = {event.subtask: event.data["steps"] for event in events if isinstance(event, AgentDataEvent)}
    recorded = Counter(event.subtask for event in events if isinstance(event, Action) and event.source == "agent")
    return kept, dict(recorded), len(events)
