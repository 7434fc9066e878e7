"""An agent's ``state.extra_data`` outlive the process and the agent's object, as plain JSON and by a model."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel, field_validator

from handiwork.agents.base import Agent, MalformedReplyError, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, ChangeAgentStateAction, CmdRunAction
from handiwork.events.codec import from_json, to_json
from handiwork.events.observation import AgentDelegateObservation
from handiwork.events.record import AgentDataEvent, CompletionEvent
from handiwork.log.eventlog import EventLog
from handiwork.session.steps.agent_runner import ExtraData
from tests.session.bench import Bench

pytestmark = pytest.mark.slow


class Counter(Agent):
    """Counts its steps, and changes what it keeps in place."""

    async def step(self, state: State) -> Step:
        steps = state.extra_data.setdefault("steps", [])
        assert isinstance(steps, list)
        if len(steps) == 3:
            return AgentFinishAction(outputs={"steps": list(steps)})
        steps.append(len(steps) + 1)
        return CmdRunAction(command=f"echo {len(steps)}")


class Count(BaseModel):
    steps: int = 0


class TypedCounter(Agent[Count]):
    """Counts its steps, each with a call of the model."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        await self.llm.complete([])
        if state.data.steps == 4:
            return AgentFinishAction(outputs={"steps": state.data.steps})
        return CmdRunAction(command=f"echo {state.data.steps}")


class BlockingCounter(TypedCounter):
    """The same in a thread."""

    def step(self, state: State[Count]) -> Step:  # type: ignore[override]
        state.data.steps += 1
        self.llm.complete([])
        if state.data.steps == 4:
            return AgentFinishAction(outputs={"steps": state.data.steps})
        return CmdRunAction(command=f"echo {state.data.steps}")


async def stored(log: EventLog, subtask: int = 0) -> list[dict[str, JsonValue]]:
    """Return the data that the log has, in order."""
    return [e.data for e in await log.read() if isinstance(e, AgentDataEvent) and e.subtask == subtask]


async def fold(log: EventLog) -> State:
    state = State()
    for event in await log.read():
        state.apply(event)
    return state


async def test_a_new_process_goes_on_with_the_agents_data(bench: Bench) -> None:
    log = await bench.log()
    first = await bench.session([], log, agent=Counter, iterations=2)
    assert (await first.run("count")).extra_data == {"steps": [1, 2]}
    second = await bench.session([], log, agent=Counter, iterations=9)
    state = await second.run(None)
    assert state.outputs == {"steps": [1, 2, 3]}
    assert await stored(log) == [{"steps": [1]}, {"steps": [1, 2]}, {"steps": [1, 2, 3]}]
    assert await fold(log) == state


@pytest.mark.parametrize("agent", [TypedCounter, BlockingCounter])
async def test_data_with_a_model_are_its_objects_in_every_process(bench: Bench, agent: type[Agent]) -> None:
    log = await bench.log()
    assert (await (await bench.session(["r"] * 2, log, agent, iterations=2)).run("count")).extra_data == {"steps": 2}
    state = await (await bench.session(["r"] * 2, log, agent)).run()
    assert state.outputs == {"steps": 4}
    assert await stored(log) == [{"steps": number} for number in range(1, 5)]
    assert await fold(log) == state


@pytest.mark.parametrize("agent", [TypedCounter, BlockingCounter])
async def test_an_interrupted_step_leaves_the_data_as_they_were(bench: Bench, agent: type[Agent]) -> None:
    log = await bench.log()
    slow = {"content": "slowly\n" * 50, "delay": 100}
    session = await bench.session(["r", slow], log, agent)
    running = asyncio.create_task(session.run("count"))
    await bench.until(CompletionEvent)
    async with asyncio.timeout(20):
        while session.state.local_iteration < 2:
            await asyncio.sleep(0.01)
    await log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
    assert (await running).extra_data == {"steps": 1}
    state = await (await bench.session(["r"] * 3, log, agent)).run()
    assert state.outputs == {"steps": 4}
    assert await stored(log) == [{"steps": number} for number in range(1, 5)]


class Stumbling(Agent[Count]):
    """Takes the first two replies for malformed, and then fails twice, each time after it changed its data."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        reply = await self.llm.complete([])
        if reply.content == "malformed":
            raise MalformedReplyError("Not like that.")
        if reply.content == "fail":
            raise ValueError("a bug")
        return AgentFinishAction(outputs={"steps": state.data.steps})


async def test_a_malformed_reply_is_a_step_and_a_failure_is_none(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session(["malformed", "malformed", "fail", "fail", "good"], log, Stumbling)
    assert (await session.run("go")).extra_data == {"steps": 2}
    assert (await session.run()).extra_data == {"steps": 2}
    assert (await session.run()).outputs == {"steps": 3}
    assert await stored(log) == [{"steps": 1}, {"steps": 2}, {"steps": 3}]


async def test_the_change_and_its_action_are_neighbours_in_the_log(bench: Bench) -> None:
    log = await bench.log()
    await (await bench.session(["r"] * 4, log, TypedCounter)).run("count")
    events = await log.read()
    for event in events:
        if isinstance(event, CmdRunAction | AgentFinishAction):
            assert isinstance(events[event.id - 2], AgentDataEvent)


class Careless(Agent):
    """Keeps what no log can hold."""

    async def step(self, state: State) -> Step:
        state.extra_data["seen"] = object()  # pyright: ignore[reportArgumentType]
        return CmdRunAction(command="true")


class Mistyped(Agent[Count]):
    """Puts a text where a number belongs."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps = "many"  # pyright: ignore[reportAttributeAccessIssue]
        return CmdRunAction(command="true")


class Bypass(Agent[Count]):
    """Has a model, and changes the plain data beside it."""

    async def step(self, state: State[Count]) -> Step:
        state.extra_data["steps"] = 7
        return CmdRunAction(command="true")


class Listed(Agent[RootModel[list[int]]]):
    """Has a model that is no JSON object."""

    async def step(self, state: State[RootModel[list[int]]]) -> Step:
        return CmdRunAction(command="true")


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (Careless, "Careless raised ValidationError"),
        (Mistyped, "Mistyped raised InterfaceError: the data do not fit Count: steps: Input should be a valid integer"),
        (Bypass, "keeps a Count: change state.data"),
        (Listed, "the data of Listed do not fit RootModel[list[int]]: Input should be a valid array"),
    ],
)
async def test_data_that_cannot_be_kept_are_the_agents_error(bench: Bench, agent: type[Agent], told: str) -> None:
    log = await bench.log()
    state = await (await bench.session([], log, agent)).run("keep it")
    assert state.change is not None
    assert (state.agent_state, state.change.reason) == ("error", "agent")
    assert told in state.change.content
    assert await stored(log) == []
    assert not any(isinstance(event, CmdRunAction) for event in bench.events)


class Renamed(BaseModel):
    """What a new version of the counter keeps: it has no default for a field that the log does not know."""

    count: int


class Changed(Agent[Renamed]):
    async def step(self, state: State[Renamed]) -> Step:
        raise AssertionError("it has no data to take a step with")


class Mended(BaseModel):
    count: int = Field(default=0, alias="steps")


class MendedCounter(Agent[Mended]):
    async def step(self, state: State[Mended]) -> Step:
        state.data.count += 1
        return AgentFinishAction(outputs={"count": state.data.count})


async def test_data_that_no_longer_fit_stop_the_session_until_the_agent_is_mended(bench: Bench) -> None:
    log = await bench.log()
    await (await bench.session(["r"] * 2, log, TypedCounter, iterations=2)).run("count")
    state = await (await bench.session([], log, Changed)).run()
    assert state.change is not None
    assert (state.agent_state, state.change.reason) == ("error", "agent")
    assert state.change.content == (
        "the data of Changed do not fit Renamed: count: Field required. "
        "Renamed has: count: int. Give the model defaults and validators that accept the data, then resume the session."
    )
    state = await (await bench.session([], log, MendedCounter)).run()
    assert (state.outputs, state.extra_data) == ({"count": 3}, {"steps": 3})


VERSIONS = """
from pydantic import BaseModel
from handiwork.agents.base import Agent
from handiwork.events.action import AgentFinishAction, CmdRunAction

class Kept(BaseModel):
    {fields}

class Child(Agent[Kept]):
    async def step(self, state):
        await self.llm.complete([])
        {step}
        if state.data.steps == 3:
            return AgentFinishAction(outputs={{"steps": state.data.steps}})
        return CmdRunAction(command=f"echo {{state.data.steps}}")
"""


class Parent(Agent[Count]):
    """Delegates, and counts its own steps."""

    async def step(self, state: State[Count]) -> Step:
        state.data.steps += 1
        for _, observation in state.history:
            if isinstance(observation, AgentDelegateObservation):
                return AgentFinishAction(outputs={**observation.outputs, "own": state.data.steps})
        return AgentDelegateAction(agent=f"{state.task}:Child", inputs={"task": "count"})


async def test_a_subtask_whose_data_no_longer_fit_goes_on_with_the_mended_agent(bench: Bench, tmp_path: Path) -> None:
    """The subtask does not end: its work would be lost."""
    log, file = await bench.log(), tmp_path / "child.py"
    versions = [
        VERSIONS.format(fields="steps: int = 0", step="state.data.steps += 1"),
        VERSIONS.format(fields="steps: list[int] = []", step="state.data.steps.append(1)"),
        VERSIONS.format(fields="steps: float = 0", step="state.data.steps += 1"),
    ]
    file.write_text(versions[0])
    state = await (await bench.session(["r"], log, Parent, iterations=2)).run(str(file))
    child = state.active
    assert (state.extra_data, state.of(child).extra_data) == ({"steps": 1}, {"steps": 1})
    file.write_text(versions[1])
    state = await (await bench.session(["r"], log, Parent)).run()
    assert (state.agent_state, state.of(child).agent_state) == ("error", "running")
    assert "steps: Input should be a valid array" in state.last_error
    file.write_text(versions[2])
    state = await (await bench.session(["r"] * 2, log, Parent)).run()
    assert state.outputs == {"steps": 3, "own": 2}
    assert await stored(log, child) == [{"steps": 1}, {"steps": 2}, {"steps": 3}]
    assert await stored(log) == [{"steps": 1}, {"steps": 2}]


class Everything(BaseModel):
    """Fields whose JSON is not what Python has, and one that changes what it is given."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    moment: datetime | None = None
    exact: Decimal = Decimal(0)
    chosen: set[int] = set()
    blob: bytes = b""
    pair: tuple[int, str] = (0, "")
    by_name: dict[int, list[Count]] = {}
    plain: JsonValue = None
    other: str = Field(default="", alias="another")

    @field_validator("other")
    @classmethod
    def _lower(cls, text: str) -> str:
        return text.strip()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    NUMBERS | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
MODELS = st.builds(
    Everything,
    moment=st.none() | st.datetimes(timezones=st.just(None) | st.just(UTC)),
    exact=st.decimals(allow_nan=False, allow_infinity=False),
    chosen=st.sets(st.integers(), max_size=3),
    blob=st.binary(max_size=20),
    pair=st.tuples(st.integers(), TEXT),
    by_name=st.dictionaries(st.integers(), st.lists(st.builds(Count, steps=st.integers()), max_size=2), max_size=2),
    plain=JSON,
    another=TEXT,
)


def record(state: State, data: ExtraData) -> int:
    """Apply the change of a step to the State as the log gives it back; return the number of its events."""
    changed = data.change()
    for event in changed:
        state.apply(from_json(to_json(event)))
    return len(changed)


@given(OBJECTS, OBJECTS)
def test_the_next_step_sees_exactly_the_json_that_a_step_left(before: dict[str, Any], after: dict[str, Any]) -> None:
    state = State()
    for value in (before, after, after):
        step = ExtraData(state, None)
        changes = json.dumps(value) != json.dumps(state.extra_data)
        step.view.extra_data = deepcopy(value)
        assert record(state, step) == changes
        assert json.dumps(ExtraData(state, None).view.extra_data) == json.dumps(value)


@given(MODELS, MODELS)
def test_the_next_step_sees_an_object_that_equals_what_a_step_left(before: Everything, after: Everything) -> None:
    state = State()
    for value in (before, after, after):
        step = ExtraData(state, Everything)
        step.view.data = value.model_copy(deep=True)
        record(state, step)
        again = ExtraData(state, Everything)
        assert again.view.data == value
        assert again.change() == []
