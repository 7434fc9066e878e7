"""Limits bind: they are checked before anything is spent, and pause."""

from __future__ import annotations

from typing import Any

import pytest

from handiwork.events.record import Usage
from handiwork.llm.types import Completion
from tests.session.bench import Bench, bash, finish


async def test_no_step_is_taken_beyond_the_iterations(bench: Bench) -> None:
    session = await bench.session([bash(f"echo {i}") for i in range(9)], iterations=3)
    state = await session.run("go")
    assert (state.agent_state, state.change.reason, state.iteration) == ("paused", "limit", 3)
    assert "3 iterations" in state.change.content


async def test_the_cost_limit_binds_during_a_task(bench: Bench) -> None:
    """A peer ran 12 steps of 1 USD under a budget of 2.50 (INVENTORY F1)."""
    session = await bench.session([bash("true", cost=1.0) for _ in range(12)], cost=2.5, iterations=12)
    state = await session.run("go")
    assert (state.agent_state, state.change.reason) == ("paused", "limit")
    assert (state.cost, state.iteration) == (2.0, 2)


async def test_the_token_limit_binds(bench: Bench) -> None:
    session = await bench.session([bash("true", usage={"input": 90, "output": 10}) for _ in range(9)], tokens=150)
    state = await session.run("go")
    assert state.usage == Usage(input=180, output=20)
    assert state.change.reason == "limit"


@pytest.mark.slow
@pytest.mark.parametrize(
    "slow", [bash("sleep 60"), bash("true", content="a\nb\n", delay=60.0)], ids=["command", "model"]
)
async def test_the_time_limit_stops_what_runs(bench: Bench, slow: Any) -> None:
    state = await (await bench.session([slow, finish()], time=1.5)).run("go")
    assert (state.agent_state, state.change.reason) == ("paused", "limit")
    assert 1.5 <= state.time < 20


async def test_a_raised_limit_goes_on_where_it_stopped(bench: Bench) -> None:
    log = await bench.log()
    await (await bench.session([bash("echo 1")], log, iterations=1)).run("go")
    state = await (await bench.session([bash("echo 1"), finish()], log, iterations=2)).run()
    assert (state.agent_state, state.iteration) == ("finished", 2)


async def test_a_cost_limit_cannot_be_kept_when_the_price_is_unknown(bench: Bench) -> None:
    session = await bench.session([bash("true"), finish()], cost=1.0)
    scripted = bench.llm.complete

    async def unpriced(*args: Any) -> Completion:
        found = await scripted(*args)
        return Completion(found.content, found.tool_calls, model="x", cost=None)

    bench.llm.complete = unpriced  # the model a session is given may be any object of the protocol
    state = await session.run("go")
    assert (state.agent_state, state.change.reason, state.iteration) == ("paused", "limit", 1)
    assert "not known" in state.change.content
