"""Limits bind: they are checked before anything is spent, and pause."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from handiwork.agents.base import Agent, Step
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentThinkAction,
    ChangeAgentStateAction,
    CmdRunAction,
)
from handiwork.events.base import Event, utc_now
from handiwork.events.record import CompletionEvent, SessionStarted, Usage
from handiwork.llm.types import Completion
from tests.session.bench import Bench, bash, call, finish

pytestmark = pytest.mark.slow


async def test_no_step_is_taken_beyond_the_iterations(bench: Bench) -> None:
    session = await bench.session([bash(f"echo {i}") for i in range(9)], iterations=3)
    state = await session.run("go")
    assert (state.agent_state, state.change.reason, state.iteration) == ("paused", "limit", 3)
    assert "3 steps" in state.change.content


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


@pytest.mark.parametrize(
    "slow", [bash("sleep 60"), bash("true", content="a\nb\n", delay=60.0)], ids=["command", "model"]
)
async def test_the_time_limit_stops_what_runs(bench: Bench, slow: Any) -> None:
    state = await (await bench.session([slow, finish()], time=1.5)).run("go")
    assert (state.agent_state, state.change.reason) == ("paused", "limit")
    assert 1.5 <= state.time < 20


async def test_a_command_that_the_time_limit_stops_says_so(bench: Bench) -> None:
    for slow in (bash("sleep 60"), call("ipython", code="import time; time.sleep(60)")):
        state = await (await bench.session([slow, finish()], time=10)).run("go")
        assert observation_text(state.history[-1][1]).endswith("[stopped: the session has reached its time limit]")


def test_subtasks_that_run_together_do_not_count_their_time_twice() -> None:
    """A thought of one was appended after the other's later reply: 100 s counted as 120 (Agentless's questions)."""
    state, began = State(), utc_now()
    appended: list[tuple[int, Event]] = [
        (0, SessionStarted(agent="AgentlessAgent", model="m", sandbox="none")),
        (0, ChangeAgentStateAction(agent_state="running", source="user")),
        (20, CompletionEvent(model="m", response={})),
        (50, CompletionEvent(model="m", response={})),
        (21, AgentThinkAction(thought="One is asked for.")),
        (51, AgentThinkAction(thought="So is the other.")),
    ]
    for number, (seconds, event) in enumerate(appended, 1):
        state.apply(event.with_fields(id=number, timestamp=began + timedelta(seconds=seconds)))
    assert state.time == 51


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
    assert "the cost of 1 earlier call is not known" in state.change.content
    assert "a higher limit does not help" in state.change.content


HERE = "tests.session.test_limits"


class Submitter(Agent):
    """Works until a limit, then shows what it has."""

    def step(self, state: State) -> Step:
        self.llm.complete([])
        return CmdRunAction(command="echo work >> work.txt")

    def at_limit(self, state: State, limit: str) -> Step | None:
        action, observation = state.history[-1]
        if isinstance(action, CmdRunAction) and action.command == "cat work.txt" and observation is not None:
            return AgentFinishAction(outputs={"limit": limit, "work": observation.text.count("work")})
        return CmdRunAction(command="cat work.txt")


class Talker(Submitter):
    """Does not come to an end."""

    def at_limit(self, state: State, limit: str) -> Step | None:
        return CmdRunAction(command="true")


class Parent(Agent):
    def step(self, state: State) -> Step:
        return AgentDelegateAction(agent=f"{HERE}:Submitter", inputs={"task": "work"})


@pytest.mark.parametrize(
    ("limits", "limit", "work"),
    [({"iterations": 2}, "iterations", 2), ({"cost": 2.5}, "cost", 2), ({"tokens": 25}, "tokens", 3)],
)
async def test_an_agent_may_end_its_task_at_a_limit(
    bench: Bench, limits: dict[str, Any], limit: str, work: int
) -> None:
    replies = [bash("", cost=1.0, usage={"input": 10, "output": 0})] * 9
    state = await (await bench.session(replies, agent=Submitter, **limits)).run("go")
    assert state.agent_state == "finished"
    assert state.outputs == {"limit": limit, "work": work}
    assert state.iteration == work


async def test_at_the_time_limit_its_end_has_time(bench: Bench) -> None:
    state = await (await bench.session([bash("", delay=60.0)], agent=Submitter, time=1.5)).run("go")
    assert state.outputs["limit"] == "time"


async def test_an_agent_that_comes_to_no_end_at_a_limit_pauses(bench: Bench) -> None:
    state = await (await bench.session([bash("")] * 9, agent=Talker, iterations=1)).run("go")
    assert (state.agent_state, state.change.reason) == ("paused", "limit")
    assert [action.command for action, _ in state.history[2:]] == ["true"] * 3


async def test_a_delegate_that_ends_at_a_limit_returns_to_its_parent(bench: Bench) -> None:
    state = await (await bench.session([bash("")] * 9, agent=Parent, iterations=3)).run("go")
    assert (state.agent_state, state.change.reason) == ("paused", "limit")
    assert state.history[-1][1].outputs == {"limit": "iterations", "work": 2}
