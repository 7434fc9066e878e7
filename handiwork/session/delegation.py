"""Answers the actions that need no sandbox: subtasks for delegates and children, the plan, large outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Protocol

from pydantic import JsonValue

from handiwork.agents.plan import InvalidTaskError
from handiwork.agents.registry import AgentNotFoundError, find
from handiwork.agents.state import State
from handiwork.events.action import (
    AddTaskAction,
    AgentDelegateAction,
    ForkAction,
    MessageAction,
    ModifyTaskAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import (
    AgentDelegateObservation,
    ChildOutcome,
    ErrorObservation,
    ForkObservation,
    PlanObservation,
)
from handiwork.log.blobs import Blobs
from handiwork.sandbox.base import Sandbox
from handiwork.session.loop import Loop
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.read_output import read_output

DEPTH, CHILDREN, AT_ONCE = 5, 64, 8
"""How deep delegates may delegate, how many children a ForkAction may have, and how many of them work at a time."""


class Branches(Protocol):
    """Copies of the workspace for children that work side by side, named by their subtask; 0 is the session's own."""

    async def open(self, parent: int, child: int) -> Sandbox:
        """Return a sandbox, not started, on a copy of the parent's files; on the copy there is, where there is one."""
        ...

    async def diff(self, child: int) -> str:
        """Return what the copy has changed, from the session's beginning on, as a unified diff."""
        ...

    async def keep(self, children: Collection[int]) -> None:
        """Remove all other copies."""
        ...


class Delegation:
    """What a session does itself for an agent. ``branches`` is None where there can be no copies."""

    def __init__(self, blobs: Blobs, branches: Branches | None) -> None:
        self._blobs, self._branches = blobs, branches

    async def answer(self, loop: Loop, action: Action) -> Observation | None:
        """Return what came of the action; None where a subtask has not ended when the session stands still."""
        match action:
            case AgentDelegateAction():
                return await self._delegate(loop, action)
            case ForkAction():
                return await self._fork(loop, action)
            case AddTaskAction() | ModifyTaskAction():
                return _plan(loop.state, action)
            case OutputReadAction():
                return await read_output(self._blobs, action, loop.root.totals.outputs)
            case _:
                return ErrorObservation(content=f"A {action.kind} cannot be carried out.", error_id="unsupported")

    async def _delegate(self, loop: Loop, action: AgentDelegateAction) -> Observation | None:
        if loop.state.delegate_level >= DEPTH:
            return ErrorObservation(content=f"Delegates are nested {DEPTH} deep: do it yourself.", error_id="too_deep")
        try:
            agent = find(action.agent)
        except AgentNotFoundError as error:
            return ErrorObservation(content=str(error), error_id="no_agent")
        await Loop(loop.parts, action.id, agent, loop.executor).run()
        child = loop.root.of(action.id)
        if not _has_ended(child):
            return None
        return AgentDelegateObservation(
            agent=action.agent, outcome=child.agent_state, outputs=_outputs(child), content=_told(child)
        )

    async def _fork(self, loop: Loop, action: ForkAction) -> Observation | None:
        if self._branches is None:
            why = "Children need copies of the workspace, which a session in place does not have."
            return ErrorObservation(content=why, error_id="unsupported")
        if not 0 < len(action.children) <= CHILDREN or loop.state.delegate_level >= DEPTH:
            why = f"A ForkAction has 1 to {CHILDREN} children, and they are nested at most {DEPTH} deep."
            return ErrorObservation(content=why, error_id="too_many")
        if action.id not in loop.root.forked:
            opened: Sequence[Event] = [
                AgentDelegateAction(
                    agent=agent, inputs=inputs, source="environment", cause=action.id, subtask=loop.subtask
                )
                for agent, inputs in action.children
            ]
            await loop.journal.append(*opened)
        ids = loop.root.forked[action.id]
        turns = asyncio.Semaphore(AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for child in ids:
                    group.create_task(self._child(self._branches, loop, child, turns))
        except* Exception as failed:  # noqa: BLE001 - the loop above says what went wrong
            raise failed.exceptions[0] from None
        children = [loop.root.of(child) for child in ids]
        if not all(_has_ended(child) for child in children):
            return None
        outcomes = [await _outcome(self._branches, child) for child in children]
        said = "\n".join(f"{number}. {_told(child)}" for number, child in enumerate(children, 1))
        return ForkObservation(outcomes=tuple(outcomes), content=said)

    async def _child(self, branches: Branches, parent: Loop, child: int, turns: asyncio.Semaphore) -> None:
        async with turns:
            state = parent.root.of(child)
            if _has_ended(state) or not parent.goes_on:
                return
            try:
                agent = find(state.agent)
            except AgentNotFoundError as error:
                await parent.journal.change("error", "agent", str(error), child)
                return
            sandbox = await branches.open(parent.executor.branch, child)
            executor = Executor(sandbox, parent.journal.interrupt, child, parent.executor.secrets)
            try:
                await Loop(parent.parts, child, agent, executor).run()
            finally:
                await executor.close()


def _has_ended(child: State) -> bool:
    """Tell whether a subtask gave back its outcome; a question is one, as the parent is who may answer it."""
    return child.agent_state in ("finished", "rejected", "error", "awaiting_user_input")


async def _outcome(branches: Branches, child: State) -> ChildOutcome:
    diff = await branches.diff(child.id)
    return ChildOutcome(agent=child.agent, outcome=child.agent_state, outputs=_outputs(child), diff=diff)


def _outputs(child: State) -> dict[str, JsonValue]:
    if child.agent_state != "awaiting_user_input":
        return dict(child.outputs)
    asked = next((a.content for a, _ in reversed(child.history) if isinstance(a, MessageAction)), "")
    return {"message": asked}


def _told(child: State) -> str:
    """Return how a subtask ended, for the agent that asked for it."""
    if child.agent_state == "error":
        return f"{child.agent} failed: {child.last_error}"
    word = {"finished": "finished", "rejected": "gave up", "awaiting_user_input": "asks"}[child.agent_state]
    said = "; ".join(f"{key}: {value}" for key, value in _outputs(child).items())
    return f"{child.agent} {word}. {said}".rstrip()


def _plan(state: State, action: AddTaskAction | ModifyTaskAction) -> Observation:
    plan = deepcopy(state.plan)
    try:
        if isinstance(action, AddTaskAction):
            plan.add(action.parent, action.goal, action.subtasks)
        else:
            plan.modify(action.task_id, action.state)
    except InvalidTaskError as error:
        return ErrorObservation(content=str(error), error_id="no_task")
    return PlanObservation(content=plan.text())
