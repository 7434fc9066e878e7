"""Delegates and children: subtasks of one session, with its budget, its limits and its user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    ChangeAgentStateAction,
    CmdRunAction,
    ForkAction,
    MessageAction,
)
from handiwork.events.observation import (
    AgentDelegateObservation,
    CmdOutputObservation,
    ErrorObservation,
    ForkObservation,
)
from handiwork.events.record import ApprovalEvent, Limits, StepStarted
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create, reopen
from handiwork.session.session import Session
from handiwork.session.steps.live import OutputDelta
from tests.session.bench import Bench, bash

pytestmark = pytest.mark.slow

HERE = __name__


def outcome(state: State) -> AgentDelegateObservation | ForkObservation | ErrorObservation | None:
    """What came of the first thing an agent handed over; None before it did."""
    kinds = AgentDelegateObservation | ForkObservation | ErrorObservation
    return next((o for _, o in state.history if isinstance(o, kinds)), None)


class Delegator(Agent):
    """Hands its task to the agent it names, and finishes with what came of that."""

    def step(self, state: State) -> Step:
        if (found := outcome(state)) is None:
            agent, _, task = state.task.partition(" ")
            return AgentDelegateAction(agent=f"{HERE}:{agent}", inputs={"task": task, "hint": "be quick"})
        return AgentFinishAction(outputs={"message": found.content})


class Worker(Agent):
    """Runs its task as a command, once the model was asked, and finishes with the output."""

    async def step(self, state: State) -> Step:
        done = [o for _, o in state.history if isinstance(o, CmdOutputObservation)]
        if done:
            return AgentFinishAction(outputs={"content": done[-1].content.strip()})
        completion = await self.llm.complete([])
        return CmdRunAction(command=str(state.inputs["task"]), completion=completion.event)


class Endless(Agent):
    """Asks the model for ever."""

    async def step(self, state: State) -> Step:
        await self.llm.complete([])
        return CmdRunAction(command=f"echo {state.local_iteration}")


class Quitter(Agent):
    def step(self, state: State) -> Step:
        return AgentRejectAction(outputs={"reason": "too hard"})


class Broken(Agent):
    def step(self, state: State) -> Step:
        raise ValueError("a bug")


class Asker(Agent):
    def step(self, state: State) -> Step:
        return MessageAction(content="which file?", wait_for_response=True)


class Repeater(Agent):
    def step(self, state: State) -> Step:
        return CmdRunAction(command="cat nothing")


class Nested(Delegator):
    """Hands over to itself."""

    def step(self, state: State) -> Step:
        if outcome(state) is None:
            return AgentDelegateAction(agent=f"{HERE}:Nested", inputs={"task": "again"})
        return super().step(state)


async def test_a_delegate_works_on_its_own_history_and_gives_its_outputs_back(bench: Bench) -> None:
    session = await bench.session(["reply"], agent=Delegator)
    state = await session.run("Worker echo hello | tee greeting")
    (handed, came) = state.history[1]
    assert isinstance(handed, AgentDelegateAction)
    assert isinstance(came, AgentDelegateObservation)
    assert (came.outcome, came.outputs, came.cause) == ("finished", {"content": "hello"}, handed.id)
    assert state.outputs == {"message": f"{HERE}:Worker finished. content: hello"}
    ran = next(event for event in bench.events if isinstance(event, CmdRunAction))
    assert (ran.subtask, handed.subtask, came.subtask) == (handed.id, 0, 0)
    assert state.subtasks == {}


async def test_iterations_count_globally_and_locally(bench: Bench) -> None:
    """The numbers of the AgentHub's README: the delegate's steps are counted in between the delegator's."""
    seen: list[tuple[int, int, int]] = []

    def watch(item: object) -> None:
        bench.watched.append(item)
        if isinstance(item, StepStarted):
            root = session.state
            state = root.of(item.subtask)
            seen.append((state.delegate_level, root.iteration - 1, state.local_iteration - 1))

    session = await bench.session(["reply"], agent=Delegator, watch=watch)
    await session.run("Worker echo hello | tee greeting")
    assert seen == [(0, 0, 0), (1, 1, 0), (1, 2, 1), (0, 3, 1)]


@pytest.mark.parametrize(
    ("agent", "how", "said"),
    [
        ("Quitter", "rejected", "gave up. reason: too hard"),
        ("Broken", "error", "failed: Broken raised ValueError: a bug"),
        ("Asker", "awaiting_user_input", "asks. message: which file?"),
        ("Repeater", "error", "failed: "),
    ],
)
async def test_a_delegate_that_does_not_finish_is_reported_and_not_fatal(
    bench: Bench, agent: str, how: str, said: str
) -> None:
    state = await (await bench.session([], agent=Delegator)).run(f"{agent} do it")
    came = outcome(state)
    assert isinstance(came, AgentDelegateObservation)
    assert came.outcome == how
    assert f"{HERE}:{agent} {said}" in came.content
    assert state.agent_state == "finished"


class Page(BaseModel):
    """The inputs of an agent that takes no other."""

    model_config = ConfigDict(extra="forbid")

    task: str
    lines: int = Field(default=10, ge=1)


class Lines(BaseModel):
    read: list[str]


class Reader(Agent):
    """Gives as many lines as it is asked for; of the task "wrong" it gives something else."""

    inputs = Page
    outputs = Lines

    def step(self, state: State) -> Step:
        page = state.inputs_as(Page)
        if page.task == "wrong":
            return AgentFinishAction(outputs={"read": page.lines})
        return AgentFinishAction(outputs=Lines(read=[page.task] * page.lines).model_dump())


class Asking(Agent):
    """Delegates what its task says as JSON, or forks children if that is a list, and finishes with what came back."""

    def step(self, state: State) -> Step:
        if (found := outcome(state)) is not None:
            return AgentFinishAction(outputs={"message": found.content})
        inputs = json.loads(state.task)
        if isinstance(inputs, list):
            return ForkAction(children=tuple((f"{HERE}:{agent}", given) for agent, given in inputs))
        return AgentDelegateAction(agent=f"{HERE}:Reader", inputs=inputs)


TAKES = "Page has: task: str, lines: int = 10."


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"lines": 2}, "task: Field required"),
        ({"task": "a", "lines": "two"}, "lines: Input should be a valid integer, unable to parse string as an integer"),
        ({"task": "a", "lines": 0, "line": 3}, "lines: Input should be greater than or equal to 1; line: Extra inputs"),
    ],
)
async def test_inputs_that_do_not_fit_are_an_error_before_the_first_step(
    bench: Bench, inputs: dict[str, object], problem: str
) -> None:
    state = await (await bench.session([], agent=Asking)).run(json.dumps(inputs))
    assert isinstance(found := outcome(state), ErrorObservation)
    assert found.error_id == "invalid_inputs"
    assert found.content.startswith(f"the inputs of {HERE}:Reader do not fit Page: {problem}")
    assert found.content.endswith(TAKES)
    assert [event.subtask for event in bench.events if isinstance(event, StepStarted)] == [0, 0]
    assert (state.agent_state, state.subtasks) == ("finished", {})


async def test_inputs_and_outputs_are_objects_of_the_agents_models(bench: Bench) -> None:
    state = await (await bench.session([], agent=Asking)).run('{"task": "a", "lines": 2}')
    assert isinstance(came := outcome(state), AgentDelegateObservation)
    assert Lines.model_validate(came.outputs) == Lines(read=["a", "a"])
    session = await bench.session([], agent=Reader)
    assert (await session.run("b")).outputs == {"read": ["b"] * 10}  # the session's own task is the input "task"


async def test_outputs_that_do_not_fit_end_the_subtask_with_an_error(bench: Bench) -> None:
    state = await (await bench.session([], agent=Asking)).run('{"task": "wrong", "lines": 2}')
    assert isinstance(came := outcome(state), AgentDelegateObservation)
    assert (came.outcome, came.outputs) == ("error", {})
    assert came.content == (
        f"{HERE}:Reader failed: Reader raised InterfaceError: the outputs do not fit Lines: "
        "read: Input should be a valid array. Lines has: read: list[str]."
    )
    assert state.agent_state == "finished"


async def test_an_unknown_agent_is_an_error_that_lists_those_there_are(bench: Bench) -> None:
    state = await (await bench.session([], agent=Delegator)).run("Missing do it")
    assert isinstance(found := outcome(state), ErrorObservation)
    assert "Missing" in found.content
    assert state.agent_state == "finished"


async def test_delegates_do_not_delegate_without_end(bench: Bench) -> None:
    state = await (await bench.session([], agent=Nested)).run("go")
    assert state.agent_state == "finished"
    assert "5 deep" in str(state.outputs["message"])


async def test_the_budget_binds_a_delegate_and_can_be_raised(bench: Bench) -> None:
    """INVENTORY F1: 2.50 USD at 1 USD a step ends after the second step, whoever spends it."""
    log = await bench.log()
    replies = [bash("true", cost=1.0) for _ in range(9)]
    state = await (await bench.session(replies, log, Delegator, cost=2.5)).run("Endless go")
    assert (state.agent_state, state.cost) == ("paused", 2.0)
    assert state.change is not None
    assert state.change.reason == "limit"
    child = state.of(state.active)
    assert (child.agent, child.local_cost, child.local_iteration) == (f"{HERE}:Endless", 2.0, 2)

    state = await (await bench.session(replies, log, Delegator, cost=4.0)).run()
    assert (state.agent_state, state.cost) == ("paused", 4.0)
    assert state.of(state.active).local_cost == 4.0


async def test_a_delegate_is_asked_about_like_its_delegator(bench: Bench) -> None:
    """INVENTORY F2: confirmation mode holds for delegates."""
    log = await bench.log()
    session = await bench.session(["reply"], log, Delegator, confirmation="always")
    state = await session.run("Worker echo hello | tee greeting")
    assert state.agent_state == "awaiting_user_confirmation"
    (asked,) = state.totals.asked
    assert not any(isinstance(event, CmdOutputObservation) for event in bench.events)
    await log.append(ApprovalEvent(action=asked, allowed=True, source="user"))
    state = await session.run()
    assert state.outputs == {"message": f"{HERE}:Worker finished. content: hello"}


async def test_an_interrupted_delegate_goes_on_and_hears_what_the_user_says(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session(["reply"], log, Delegator)
    running = asyncio.create_task(session.run("Worker echo begun; sleep 100"))
    await bench.until(OutputDelta)
    await log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
    state = await asyncio.wait_for(running, 10)
    assert state.agent_state == "paused"
    child = state.active
    state = await (await bench.session([], log, Delegator)).run("enough")
    said = [e for e in bench.events if isinstance(e, MessageAction) and e.content == "enough"]
    assert [message.subtask for message in said[:1]] == [child]
    assert state.agent_state == "finished"


class Forker(Agent):
    """Has its task done by two workers at a time, and finishes with their outcomes."""

    def step(self, state: State) -> Step:
        if (found := outcome(state)) is None:
            children = [(f"{HERE}:Worker", {"task": command}) for command in state.task.split(";")]
            return [CmdRunAction(command="echo common > common"), ForkAction(children=tuple(children))]
        return AgentFinishAction(outputs={"message": found.content})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "data") as opened:
        yield opened


async def session_of(
    store: Store, folder: Path, sandbox: str, task_costs: float = 0.0, agent: str = "Forker", **limits: float
) -> Session:
    project = folder / "project"
    project.mkdir()
    (project / "f").write_text("before\n")
    script = folder / "script.jsonl"
    script.write_text(f'{{"content": "reply", "cost": {task_costs}}}\n' * 40)
    config = SessionConfig(
        agent=f"{HERE}:{agent}",
        model=f"scripted:{script}",
        workspace=str(project),
        sandbox=sandbox,
        limits=Limits(**limits),
    )
    return await create(store, folder / "data", config, lambda _: None, "a test")


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
async def test_children_work_side_by_side_on_copies_of_their_own(store: Store, tmp_path: Path, sandbox: str) -> None:
    opened = await session_of(store, tmp_path, sandbox)
    try:
        state = await opened.run("cat common && echo one > f; rm f common && ls")
    finally:
        await opened.close()
    (_, came) = state.history[2]
    assert isinstance(came, ForkObservation)
    assert [child.outputs for child in came.outcomes] == [{"content": "common"}, {"content": ""}]
    assert "-before\n+one\n" in came.outcomes[0].diff
    assert "common" not in came.outcomes[0].diff, "the parent had made it before"
    assert came.outcomes[1].diff.count("deleted file") == 2
    assert state.agent_state == "finished"
    assert list((tmp_path / "data/sessions" / opened.id / "children").iterdir()) == []


@pytest.mark.parametrize(
    ("children", "problem"),
    [
        (
            [("Reader", {"task": "a"}), ("Reader", {})],
            "Child 2: the inputs of tests.session.test_delegation:Reader do not fit Page",
        ),
        ([("Missing", {"task": "a"}), ("Reader", {"task": "a"})], "Child 1: the agent"),
        ([("Worker", {}), ("Reader", {"task": "a"})], "task: Field required. TaskInputs has: task: str, ..."),
    ],
)
async def test_no_child_begins_if_one_cannot(
    store: Store, tmp_path: Path, children: list[tuple[str, dict[str, str]]], problem: str
) -> None:
    opened = await session_of(store, tmp_path, "none", agent="Asking")
    try:
        state = await opened.run(json.dumps(children))
        events = await opened.log.read()
    finally:
        await opened.close()
    assert isinstance(found := outcome(state), ErrorObservation)
    assert problem in found.content
    assert (state.agent_state, state.forked) == ("finished", {})
    assert not any(isinstance(event, AgentDelegateAction) for event in events)


async def test_each_child_gives_its_outputs_or_its_error(store: Store, tmp_path: Path) -> None:
    opened = await session_of(store, tmp_path, "none", agent="Asking")
    try:
        state = await opened.run(json.dumps([("Reader", {"task": "a", "lines": 1}), ("Reader", {"task": "wrong"})]))
    finally:
        await opened.close()
    assert isinstance(found := outcome(state), ForkObservation)
    assert [(child.outcome, child.outputs) for child in found.outcomes] == [
        ("finished", {"read": ["a"]}),
        ("error", {}),
    ]
    assert "read: Input should be a valid array" in found.content


async def test_children_share_the_budget_and_go_on_once_it_is_raised(store: Store, tmp_path: Path) -> None:
    opened = await session_of(store, tmp_path, "bubblewrap", task_costs=1.0, cost=2.0)
    try:
        state = await opened.run("echo 1;echo 2;echo 3;echo 4")
    finally:
        await opened.close()
    assert (state.agent_state, state.cost) == ("paused", 2.0)
    opened = await reopen(store, tmp_path / "data", opened.id, lambda _: None, limits=Limits(cost=9.0))
    try:
        state = await opened.run()
    finally:
        await opened.close()
    assert (state.agent_state, state.cost) == ("finished", 4.0)
    assert isinstance(found := outcome(state), ForkObservation)
    assert [child.outputs["content"] for child in found.outcomes] == ["1", "2", "3", "4"]


async def test_a_session_that_is_opened_and_closed_keeps_the_copies_of_children_at_work(
    store: Store, tmp_path: Path
) -> None:
    opened = await session_of(store, tmp_path, "none", task_costs=1.0, cost=2.0)
    try:
        await opened.run("echo 1;echo 2;echo 3;echo 4")
    finally:
        await opened.close()
    children = tmp_path / "data/sessions" / opened.id / "children"
    kept = sorted(children.iterdir())
    assert kept
    await (await reopen(store, tmp_path / "data", opened.id, lambda _: None)).close()
    assert sorted(children.iterdir()) == kept
