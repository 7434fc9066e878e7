"""Call an agent's ``step`` on the event loop or in a thread, and link the actions to their completion."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from copy import copy, deepcopy
from functools import partial
from typing import cast

from pydantic import BaseModel

from handiwork.agents.base import Agent, EmptyReplyError, Step
from handiwork.agents.interface import ExtraDataError, InterfaceError, dump, parse
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, MessageAction
from handiwork.events.base import Action, Event
from handiwork.events.describe import describe
from handiwork.events.record import AgentDataEvent, StepStarted
from handiwork.session.policies.budget import LimitReachedError
from handiwork.session.policies.condense import CannotCondenseError
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.recorded_llm import BlockingLLM, RecordedLLM

CLOSINGS, CLOSING_SECONDS = 3, 60.0
"""How often in a row an agent may act at a limit, and the seconds for each action."""

REMEDY = "Give the model defaults and validators that accept the data, then resume the session."


class AgentRunner:
    """One agent object and its model. Cancelling ``step`` cancels the model call and drops the agent's result."""

    def __init__(self, agent: type[Agent], llm: RecordedLLM) -> None:
        self.name = agent.__name__
        self._llm = llm
        self._blocking = (
            None if inspect.iscoroutinefunction(agent.step) else BlockingLLM(llm, asyncio.get_running_loop())
        )
        self._agent = agent(self._blocking or llm)
        self._extra_data = ExtraData(State(), None)
        self._closings = 0

    async def begin_step(self, executor: Executor, root: State, subtask: int) -> list[Event]:
        """Return the events that begin a step, after MCP servers have started if the agent uses them."""
        servers = await executor.prepare_mcp(root.totals.mcp) if self._agent.uses_mcp else []
        return [*servers, StepStarted(subtask=subtask)]

    async def step(self, state: State) -> list[Action]:
        """Return the agent's next actions in order; in plan mode, the message of the task's finish is a proposal.

        Each action gets the step's last completion; if the agent has linked some itself, the others are its own.

        Raises the agent's errors, ExtraDataError before the step, and InterfaceError for a finish with outputs that do
        not fit.
        """
        self._llm.last_event = None
        self._extra_data = ExtraData(state, self._agent.data_model)
        view = self._extra_data.view
        try:
            if self._blocking is None:
                result = await cast("Awaitable[Step]", self._agent.step(view))
            else:
                result = await self._in_thread(self._blocking, view)
        except EmptyReplyError:
            self._llm.last_event = None  # an earlier call of the step is not this reply
            raise
        self._closings = 0
        actions = self._checked(result)
        if state.totals.plan_mode and not state.id:
            actions = list(map(_proposal, actions))
        if any(action.completion for action in actions):
            return actions
        return [action.with_fields(completion=self._llm.last_event) for action in actions]

    def at_limit(self, state: State, error: LimitReachedError | CannotCondenseError) -> list[Action]:
        """Return the actions by which the agent ends its task at a limit; none if the session is to pause.

        Raises the agent's errors, and InterfaceError like ``step``.
        """
        if self._closings == CLOSINGS:
            return []
        self._closings += 1
        limit = error.limit if isinstance(error, LimitReachedError) else "context"
        result = self._agent.at_limit(ExtraData(state, self._agent.data_model).view, limit)
        return [] if result is None else self._checked(result)

    def seconds(self, remaining: float | None) -> float | None:
        """Return the seconds that an action may take when ``remaining`` are left; the agent's end gets its own."""
        return remaining if remaining is None or not self._closings else max(remaining, CLOSING_SECONDS)

    def _checked(self, result: Step) -> list[Action]:
        several = not isinstance(result, Action) and isinstance(cast("object", result), Iterable)
        actions = list(cast("Iterable[Action]", result)) if several else [cast("Action", result)]
        if not all(isinstance(cast("object", action), Action) for action in actions):
            shown = repr(result)[:200]
            raise TypeError(f"step returned {shown}, which is no action and no list of actions")
        for action in actions:
            if isinstance(action, AgentFinishAction):
                parse(self._agent.outputs, action.outputs, "the outputs")
        return actions

    def changed_data(self) -> list[AgentDataEvent]:
        """Return the event for the agent's data if the last step changed it.

        Append it together with the step's actions: then a crash keeps both or neither. Raises ValueError if the data
        is not JSON, and InterfaceError if it does not fit the agent's model.
        """
        return self._extra_data.change()

    async def _in_thread(self, blocking: BlockingLLM, state: State) -> Step:
        turn = blocking.turn

        def step() -> Step:
            blocking.enter(turn)
            return cast("Step", self._agent.step(state))

        try:
            return await in_daemon_thread(step)
        except asyncio.CancelledError:
            blocking.interrupt()
            raise


def _proposal(action: Action) -> Action:
    """Return the finish of a planning agent as a message that the user answers; other actions as they are."""
    if not isinstance(action, AgentFinishAction):
        return action
    fields = action.model_dump(include={"thought", "completion", "tool_call_id"})
    return MessageAction(content=describe(action).object, wait_for_response=True, **fields)


async def in_daemon_thread(function: Callable[[], Step]) -> Step:
    """Run the function in a daemon thread and return its result.

    After a cancellation the thread continues and its result is dropped; it does not keep the process alive.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Step] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not outcome.done():
            settled()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - the awaiting caller raises it
            settled = partial(outcome.set_exception, error)
        else:
            settled = partial(outcome.set_result, result)
        with suppress(RuntimeError):  # the loop is closed: no caller waits any more
            loop.call_soon_threadsafe(settle, settled)

    threading.Thread(target=run, name="agent-step", daemon=True).start()
    return await outcome


class ExtraData:
    """The agent's data during one step: ``view`` is the step's State, with ``extra_data`` and ``data`` of its own.

    A step that fails or is interrupted, even if its thread runs on, leaves the data as the log has it.
    """

    def __init__(self, state: State, model: type[BaseModel] | None) -> None:
        """Raises ExtraDataError if the data do not fit the model."""
        self._state, self._model = state, model
        self.view = copy(state)
        self.view.extra_data = deepcopy(state.extra_data)
        if model is not None:
            try:
                self.view.data = parse(model, state.extra_data, f"the data of {state.agent}")
            except InterfaceError as error:
                raise ExtraDataError(f"{error} {REMEDY}") from None
            self._loaded = dump(model, self.view.data, "the data")

    def change(self) -> list[AgentDataEvent]:
        """Return the event for the data if the step changed it. Raises ValueError, InterfaceError."""
        before, after = self._state.extra_data, self.view.extra_data
        if self._model is not None:
            if before != after:
                raise InterfaceError(f"the agent keeps a {self._model.__name__}: change state.data, not extra_data")
            before, after = self._loaded, dump(self._model, self.view.data, "the data")
        event = AgentDataEvent(data=after, subtask=self._state.id)
        return [] if json.dumps(event.data) == json.dumps(before) else [event]  # to Python 1, 1.0 and True are equal
