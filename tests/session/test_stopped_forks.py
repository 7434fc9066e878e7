"""A user who interrupts a fork at work and writes a message stops its children; the agent that forked answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    ChangeAgentStateAction,
    CmdRunAction,
    ForkAction,
    MessageAction,
)
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation, ForkObservation
from handiwork.events.record import ApprovalEvent, Confirmation, StepStarted
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.delegation import AT_ONCE
from handiwork.session.open import create
from handiwork.session.session import Session
from handiwork.session.user_events import interrupting

HERE = __name__
WAIT = "until [ -e {go} ]; do sleep 0.05; done"


class Worker(Agent):
    """Writes a file, then runs its task as a command, and finishes."""

    def step(self, state: State) -> Step:
        ran = [o for _, o in state.history if isinstance(o, CmdOutputObservation)]
        commands = ["echo half > done", str(state.inputs["task"])]
        return CmdRunAction(command=commands[len(ran)]) if len(ran) < len(commands) else AgentFinishAction()


class Delegator(Agent):
    """Hands its task to a worker."""

    def step(self, state: State) -> Step:
        return AgentDelegateAction(agent=f"{HERE}:Worker", inputs=state.inputs)


class Forker(Agent):
    """Forks children for the lines of its task, then runs a command and finishes with the newest message."""

    child = "Worker"

    def step(self, state: State) -> Step:
        if not any(isinstance(action, ForkAction) for action, _ in state.history):
            tasks = state.task.split("\n")
            return ForkAction(children=tuple((f"{HERE}:{self.child}", {"task": task}) for task in tasks))
        if not any(isinstance(action, CmdRunAction) for action, _ in state.history):
            return CmdRunAction(command="echo heard > heard")
        return AgentFinishAction(outputs={"message": _messages(state)[-1]})


class ForkerOfDelegators(Forker):
    child = "Delegator"


class WaitingForker(Agent):
    """Runs its task as a command before it forks a child, and finishes with the newest message."""

    def step(self, state: State) -> Step:
        if not any(isinstance(action, ForkAction) for action, _ in state.history):
            return [CmdRunAction(command=state.task), ForkAction(children=((f"{HERE}:Worker", {"task": "true"}),))]
        return AgentFinishAction(outputs={"message": _messages(state)[-1]})


def _messages(state: State) -> list[str]:
    return [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]


class Forks:
    """Makes one session of an agent that forks; ``events`` are those it has shown."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self._store = folder, store
        self.events: list[Event] = []

    @asynccontextmanager
    async def session(self, agent: type[Agent], confirmation: Confirmation = "never") -> AsyncIterator[Session]:
        (self.folder / "project").mkdir()
        config = SessionConfig(
            agent=f"{HERE}:{agent.__name__}",
            model="scripted",
            workspace=str(self.folder / "project"),
            sandbox="none",
            confirmation=confirmation,
        )
        data = self.folder / "data"
        session = await create(self._store, data, config, self._watch, "a test", llm=ScriptedLLM([]))
        async with session.hold_lease():
            yield session

    def _watch(self, item: object) -> None:
        if isinstance(item, Event):
            self.events.append(item)

    async def until(self, holds: Callable[[Event], bool], times: int = 1) -> None:
        async with asyncio.timeout(30):
            while sum(map(holds, self.events)) < times:
                await asyncio.sleep(0.01)


@pytest.fixture
async def forks(tmp_path: Path) -> AsyncIterator[Forks]:
    async with Store.open(tmp_path / "data") as store:
        yield Forks(tmp_path, store)


def is_waiting(event: Event) -> bool:
    """Whether a command that waits begins."""
    return isinstance(event, CmdRunAction) and event.command.startswith("until")


def forked(state: State) -> ForkObservation:
    return next(o for _, o in state.history if isinstance(o, ForkObservation))


@pytest.mark.slow
async def test_an_interrupting_message_stops_the_children_and_the_agent_that_forked_answers_it(forks: Forks) -> None:
    waits = WAIT.format(go=forks.folder / "go")
    async with forks.session(Forker) as session:
        running = asyncio.create_task(session.run("\n".join([waits] * (AT_ONCE + 1))))
        await forks.until(is_waiting, times=AT_ONCE)
        await session.log.append(*interrupting(MessageAction(content="stop that", source="user")))
        state = await asyncio.wait_for(running, 30)
    assert (state.agent_state, state.outputs) == ("finished", {"message": "stop that"})
    assert [child.outcome for child in forked(state).outcomes] == ["stopped"] * (AT_ONCE + 1)
    assert ["+half" in child.diff for child in forked(state).outcomes] == [True] * AT_ONCE + [False]
    first, *_, last = forked(state).content.splitlines()
    assert first == f"1. {HERE}:Worker was stopped by the user. Its last actions: run echo half > done; run {waits}"
    assert last == f"{AT_ONCE + 1}. {HERE}:Worker had not begun when the user stopped it."
    assert (state.subtasks, state.forked) == ({}, {})


@pytest.mark.slow
@pytest.mark.parametrize("message", ["stop that", None])
async def test_after_a_pause_the_children_go_on_unless_the_user_writes(forks: Forks, message: str | None) -> None:
    async with forks.session(Forker) as session:
        running = asyncio.create_task(session.run(WAIT.format(go=forks.folder / "go")))
        await forks.until(is_waiting)
        await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
        assert (await asyncio.wait_for(running, 30)).agent_state == "paused"
        steps = sum(isinstance(event, StepStarted) and event.subtask > 0 for event in forks.events)
        state = await session.run(message)
    assert state.agent_state == "finished"
    assert [child.outcome for child in forked(state).outcomes] == ["stopped" if message else "finished"]
    went_on = sum(isinstance(event, StepStarted) and event.subtask > 0 for event in forks.events) > steps
    assert went_on == (message is None)


async def test_questions_of_a_stopped_child_and_its_delegates_go_with_it(forks: Forks) -> None:
    async with forks.session(ForkerOfDelegators, confirmation="always") as session:
        assert (await session.run("true")).agent_state == "awaiting_user_confirmation"
        await session.log.append(*interrupting(MessageAction(content="stop that", source="user")))
        state = await session.run()
        assert [action.id for action in state.pending] == state.totals.asked, "only the agent's own command asks"
        await session.log.append(ApprovalEvent(action=state.totals.asked[0], allowed=True, source="user"))
        state = await session.run()
    assert (state.agent_state, state.outputs) == ("finished", {"message": "stop that"})
    assert state.subtasks == {}


async def test_a_fork_that_had_not_begun_never_does(forks: Forks) -> None:
    async with forks.session(WaitingForker) as session:
        running = asyncio.create_task(session.run(WAIT.format(go=forks.folder / "go")))
        await forks.until(is_waiting)
        await session.log.append(*interrupting(MessageAction(content="stop that", source="user")))
        state = await asyncio.wait_for(running, 30)
    assert (state.agent_state, state.outputs) == ("finished", {"message": "stop that"})
    assert not any(event.subtask for event in forks.events)
