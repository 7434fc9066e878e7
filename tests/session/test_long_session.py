"""A session of thousands of steps: what one step takes, in memory and in time, does not grow with those before it.

`pytest tests/session/test_long_session.py -m slow -s` prints the memory and the time of a step as it goes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handiwork.events.record import CondensationEvent, StepStarted
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities
from handiwork.log.store import Store
from tests.session.bench import Bench, bash, finish

PAGES = 10
"""How many times the memory is noted."""

lengths = pytest.mark.parametrize(
    "steps", [pytest.param(400, marks=pytest.mark.slow), pytest.param(5_000, marks=pytest.mark.campaign)]
)
"""Runs a test with a shorter session in test-slow, and a longer one in test-crash."""


def native(number: int) -> Reply:
    return bash(f"seq {number} {number + 400}", content="I count, and go on counting.")


def constrained(number: int) -> Reply:
    command = f"seq {number} {number + 400}"
    return Reply(content=json.dumps({"thought": "I count.", "action": "bash", "command": command}))


def resident() -> int:
    """Bytes of memory this process holds."""
    gc.collect()
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 1024


class Meter:
    """Notes the memory at every page of so many steps, and prints the time of those since the last."""

    def __init__(self, page: int) -> None:
        self._page = page
        self.steps = self.condensations = 0
        self.memory: list[int] = []
        self._since = time.perf_counter()

    def __call__(self, event: object) -> None:
        self.condensations += isinstance(event, CondensationEvent)
        self.steps += isinstance(event, StepStarted)
        if isinstance(event, StepStarted) and self.steps % self._page == 0:
            now = time.perf_counter()
            self.memory.append(resident())
            each = (now - self._since) / self._page * 1_000
            said = f"{self.steps} steps: {each:.1f} ms each, {self.memory[-1] / 1e6:.1f} MB"
            sys.stdout.write(f"\n{said}, {self.condensations} condensed")
            self._since = time.perf_counter()


@lengths
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("reply", "tools"), [(native, True), (constrained, False)], ids=["native", "constrained"])
async def test_memory_stays_flat(bench: Bench, reply: Callable[[int], Reply], tools: bool, steps: int) -> None:
    meter = Meter(steps // PAGES)
    session = await bench.session(
        [*map(reply, range(2 * steps)), finish()],
        watch=meter,
        capabilities=Capabilities(tools=tools, window=16_000),
        iterations=steps,
    )
    state = await session.run("count")
    assert (state.iteration, state.change.reason) == (steps, "limit")
    assert meter.condensations > steps / 100
    assert meter.memory[-1] < 1.1 * meter.memory[len(meter.memory) // 2 - 1]


@lengths
@pytest.mark.timeout(900)
async def test_killed_at_random_points_it_goes_on(tmp_path: Path, steps: int) -> None:
    """The process itself checks in the end that the fold of the log is the State it worked with."""
    (tmp_path / "workspace").mkdir()
    chance = random.Random(seed := random.randrange(10**9))
    kills = steps // 100
    events = head = 0
    for kill in range(kills + 1):
        async with Store.open(tmp_path / "data") as store:
            if not kill:
                log = await store.create(agent="CodeActAgent", model="scripted", title="a test")
            log = await store.log(log.id)
            assert await log.head() >= events, f"seed {seed}: acknowledged events were lost"
            head = await log.head()
        events = head + chance.randrange(10, steps * 4 // (kills // 2 + 1))  # more than half of the kills come
        arguments = [str(tmp_path), str(steps), *([str(events)] if kill < kills else [])]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.session.long", *arguments), stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate()
        if process.returncode == 0:
            break  # it came to its end before
        assert process.returncode == (-signal.SIGKILL if kill < kills else 0), f"seed {seed}: {errors.decode()}"
    assert kill > kills // 2
