"""Answers the actions that need no sandbox: subtasks for delegates and children, the plan, outputs, the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Protocol

from pydantic import JsonValue

from handiwork.agents.base import Agent
from handiwork.agents.interface import InterfaceError, parse
from handiwork.agents.micro.catalog import MicroCatalog
from handiwork.agents.plan import InvalidTaskError
from handiwork.agents.registry import find, names_a_file
from handiwork.agents.rendering import shorten
from handiwork.agents.state import ENDED, State
from handiwork.errors import HandiworkError
from handiwork.events.action import (
    AddTaskAction,
    AgentDelegateAction,
    ForkAction,
    MCPToolsAction,
    MessageAction,
    ModifyTaskAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Event, Observation
from handiwork.events.code_memory import (
    CodeMemoryObservation,
    RecallCodeAction,
    RecallDocstringsAction,
    RememberCodeAction,
    RememberDocstringsAction,
    SummarizeCodeAction,
)
from handiwork.events.describe import describe
from handiwork.events.observation import (
    AgentDelegateObservation,
    ChildOutcome,
    ErrorObservation,
    ForkObservation,
    PlanObservation,
)
from handiwork.log.blobs import Blobs
from handiwork.sandbox.base import Sandbox
from handiwork.session.hooks.runner import newest_message
from handiwork.session.loop import Loop
from handiwork.session.steps.executor import Executor, is_export
from handiwork.session.steps.pending import given_up, not_run
from handiwork.session.steps.read_output import read_output
from handiwork.session.storage.code_memory import CodeMemory

DEPTH, CHILDREN, AT_ONCE = 5, 64, 8
"""Maximum depth of delegation, children of a ForkAction, and children that run at once."""

LAST, LONG = 5, 300
"""Actions of a stopped child that its parent is told, and the characters of each."""


class Branches(Protocol):
    """Copies of the workspace for children that run in parallel, by subtask id; 0 is the session's own copy."""

    async def open(self, parent: int, child: int) -> Sandbox:
        """Return an unstarted sandbox on the child's copy of the parent's files; create the copy if it is missing."""
        ...

    async def diff(self, parent: int, child: int) -> str:
        """Return the copy's changes to the parent's files as a unified diff."""
        ...

    async def keep(self, children: Collection[int]) -> None:
        """Remove all other copies."""
        ...


class Delegation:
    """Answers the actions that the session itself runs. ``branches`` is None if copies are impossible.

    ``catalog`` has the micro agents; None means those of the user and of packages. ``memory`` is that of the session's
    codebase; without it nothing is recalled or remembered.
    """

    def __init__(
        self,
        blobs: Blobs,
        branches: Branches | None,
        catalog: MicroCatalog | None = None,
        memory: CodeMemory | None = None,
    ) -> None:
        self._blobs, self._branches, self._catalog, self._memory = blobs, branches, catalog, memory
        self._executors: dict[int, Executor] = {}

    async def close(self) -> None:
        """Close the sandboxes of the children that have not ended."""
        for child in list(self._executors):
            await self._close(child)

    async def answer(self, loop: Loop, action: Action) -> Observation | None:
        """Return the action's observation; None if the session stopped before a subtask ended."""
        match action:
            case AgentDelegateAction() | ForkAction() if _is_overtaken(loop, action):
                return not_run()
            case AgentDelegateAction():
                return await self._delegate(loop, action)
            case ForkAction():
                return await self._fork(loop, action)
            case AddTaskAction() | ModifyTaskAction():
                return _plan(loop.state, action)
            case MCPToolsAction():
                return await loop.executor.look_up_tools(loop.root.totals.mcp, action)
            case OutputReadAction():
                return await read_output(self._blobs, action, loop.root.totals.outputs)
            case SummarizeCodeAction():
                return CodeMemoryObservation(content="The summary is kept. If the task is solved, end it with done.")
            case RecallCodeAction() | RememberCodeAction() | RecallDocstringsAction() | RememberDocstringsAction():
                return await asyncio.to_thread(_use_memory, self._memory, action)
            case _:
                return ErrorObservation(content=f"A {action.kind} cannot be carried out.", error_id="unsupported")

    async def _delegate(self, loop: Loop, action: AgentDelegateAction) -> Observation | None:
        if loop.state.delegate_level >= DEPTH:
            return ErrorObservation(content=f"Delegates are nested {DEPTH} deep: do it yourself.", error_id="too_deep")
        agent = _agent(action, action.agent, action.inputs, self._catalog)
        if isinstance(agent, ErrorObservation):
            return agent
        await Loop(loop.context, action.id, agent, loop.executor).run()
        child = loop.root.of(action.id)
        if not _has_ended(child):
            return None
        return AgentDelegateObservation(
            agent=action.agent, outcome=child.agent_state, outputs=_outputs(child), content=_outcome_text(child)
        )

    async def _fork(self, loop: Loop, action: ForkAction) -> Observation | None:
        if self._branches is None:
            problem = "Children need copies of the workspace, which a session in place does not have."
            return ErrorObservation(content=problem, error_id="unsupported")
        if not 0 < len(action.children) <= CHILDREN or loop.state.delegate_level >= DEPTH:
            problem = f"A ForkAction has 1 to {CHILDREN} children, and they are nested at most {DEPTH} deep."
            return ErrorObservation(content=problem, error_id="too_many")
        if action.id not in loop.root.forked:
            for number, (name, inputs) in enumerate(action.children, 1):
                if isinstance(problem := _agent(action, name, inputs, self._catalog), ErrorObservation):
                    return problem.with_fields(content=f"Child {number}: {problem.content}")
            delegations: Sequence[Event] = [
                AgentDelegateAction(
                    agent=agent, inputs=inputs, source="environment", cause=action.id, subtask=loop.subtask
                )
                for agent, inputs in action.children
            ]
            await loop.journal.append(*delegations)
        ids = loop.root.forked[action.id]
        turns = asyncio.Semaphore(AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for child in ids:
                    group.create_task(self._child(self._branches, loop, child, turns))
        except* Exception as errors:  # noqa: BLE001 - the parent's loop records the error
            raise errors.exceptions[0] from None
        children = [loop.root.of(child) for child in ids]
        if not all(_has_ended(child) for child in children):
            return None
        await self._give_up(loop, [child.id for child in children if child.agent_state == "stopped"])
        outcomes = [await _outcome(self._branches, loop.executor.branch, child) for child in children]
        text = "\n".join(f"{number}. {_outcome_text(child)}" for number, child in enumerate(children, 1))
        return ForkObservation(outcomes=tuple(outcomes), content=text)

    async def _child(self, branches: Branches, parent: Loop, child: int, turns: asyncio.Semaphore) -> None:
        async with turns:
            state = parent.root.of(child)
            if _has_ended(state) or not parent.is_running:
                return
            try:
                agent = find(state.agent, self._catalog)
            except HandiworkError as error:
                await parent.journal.change("error", "agent", str(error), child)
                return
            waits = False
            try:
                executor = self._executors.get(child) or await self._open(branches, parent, child)
                await Loop(parent.context, child, agent, executor).run()
                waits = not _has_ended(parent.root.of(child))
            finally:
                if not waits:
                    await self._close(child)

    async def _open(self, branches: Branches, parent: Loop, child: int) -> Executor:
        """Return a new executor for a child; like the session's own, it stays while the session waits for the user."""
        shared = parent.executor
        sandbox = await branches.open(shared.branch, child)
        # A process that resumes a fork runs its own exports after it.
        exports = [*shared.exports, *filter(is_export, parent.state.pending)]
        executor = Executor(
            sandbox, parent.journal.interrupt, child, shared.secrets, shared.make_mcp, shared.make_search, exports
        )
        self._executors[child] = executor
        return executor

    async def _give_up(self, loop: Loop, children: Sequence[int]) -> None:
        """End what the children that the user has stopped, and the subtasks below them, still wait for."""
        stopped: dict[int, State] = {}
        for task in loop.root.subtasks.values():  # a parent comes before its children
            if task.id in children or task.parent in stopped:
                stopped[task.id] = task
        for task in reversed(stopped.values()):
            for action in task.pending:
                await loop.journal.append(given_up().with_fields(cause=action.id, subtask=task.id))
            await self._close(task.id)

    async def _close(self, child: int) -> None:
        if (executor := self._executors.pop(child, None)) is not None:
            await executor.close()


def _use_memory(
    memory: CodeMemory | None,
    action: RecallCodeAction | RememberCodeAction | RecallDocstringsAction | RememberDocstringsAction,
) -> Observation:
    try:
        if memory is None:
            return CodeMemoryObservation()
        match action:
            case RecallCodeAction():
                return CodeMemoryObservation(episodes=memory.recall(action.task))
            case RecallDocstringsAction():
                return CodeMemoryObservation(docstrings=memory.recall_docstrings(action.blocks))
            case RememberCodeAction():
                memory.remember(action.episode)
            case RememberDocstringsAction():
                memory.remember_docstrings(action.docstrings)
    except OSError as error:
        return ErrorObservation(content=f"The memory of the codebase cannot be used: {error}.", error_id="no_memory")
    return CodeMemoryObservation()


def _agent(
    action: Action, name: str, inputs: dict[str, JsonValue], catalog: MicroCatalog | None
) -> type[Agent] | ErrorObservation:
    """Return the agent, or the error for its delegator if there is none or it does not take these inputs.

    An action of the model's own names no file.
    """
    if (action.completion or action.tool_call_id) and names_a_file(name):
        return ErrorObservation(content=f"{name!r} is not the name of an installed agent.", error_id="no_agent")
    try:
        agent = find(name, catalog)
        parse(agent.inputs, inputs, f"the inputs of {name}")
    except HandiworkError as error:
        return ErrorObservation(content=str(error), error_id="no_agent")
    except InterfaceError as error:
        return ErrorObservation(content=str(error), error_id="invalid_inputs")
    return agent


def _has_ended(child: State) -> bool:
    """Return whether a subtask has an outcome; a question counts as one, since only the parent can answer it."""
    return child.agent_state in ENDED or child.agent_state == "awaiting_user_input"


def _is_overtaken(loop: Loop, action: AgentDelegateAction | ForkAction) -> bool:
    """Return whether the user interrupted the session before any subtask began, and then wrote a message."""
    has_begun = action.id in loop.root.forked or (
        isinstance(action, AgentDelegateAction) and loop.root.of(action.id).local_iteration > 0
    )
    return action.id < loop.root.totals.interrupted < newest_message(loop.state) and not has_begun


async def _outcome(branches: Branches, parent: int, child: State) -> ChildOutcome:
    # Before its first step it may have no copy.
    diff = await branches.diff(parent, child.id) if child.local_iteration else ""
    return ChildOutcome(agent=child.agent, outcome=child.agent_state, outputs=_outputs(child), diff=diff)


def _outputs(child: State) -> dict[str, JsonValue]:
    if child.agent_state != "awaiting_user_input":
        return dict(child.outputs)
    question = next((a.content for a, _ in reversed(child.history) if isinstance(a, MessageAction)), "")
    return {"message": question}


def _outcome_text(child: State) -> str:
    """Return the parent agent's message about the end of a subtask."""
    if child.agent_state == "error":
        return f"{child.agent} failed: {child.last_error}"
    if child.agent_state == "stopped":
        return _stopped_text(child)
    verb = {"finished": "finished", "rejected": "gave up", "awaiting_user_input": "asks"}[child.agent_state]
    outputs = "; ".join(f"{key}: {value}" for key, value in _outputs(child).items())
    return f"{child.agent} {verb}. {outputs}".rstrip()


def _stopped_text(child: State) -> str:
    """Return what a child that the user has stopped has done so far."""
    actions = [describe(action) for action, _ in child.history if action.source == "agent"]
    if not actions:
        return f"{child.agent} had not begun when the user stopped it."
    newest = "; ".join(shorten(f"{verb} {target}".strip(), LONG) for verb, target, _ in actions[-LAST:])
    return f"{child.agent} was stopped by the user. Its last actions: {newest}"


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
