"""Call an agent's ``step`` on the event loop or in a thread, and link the actions to their completion."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import cast

from pydantic import JsonValue

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.base import Action
from handiwork.events.record import AgentDataEvent
from handiwork.session.steps.recorded_llm import BlockingLLM, RecordedLLM


class AgentRunner:
    """One agent object and its model. Cancelling ``step`` cancels the model call and drops the agent's result."""

    def __init__(self, agent: type[Agent], llm: RecordedLLM) -> None:
        self.name = agent.__name__
        self._llm = llm
        self._blocking = (
            None if inspect.iscoroutinefunction(agent.step) else BlockingLLM(llm, asyncio.get_running_loop())
        )
        self._agent = agent(self._blocking or llm)
        self._recorded: dict[str, JsonValue] | None = None

    async def step(self, state: State) -> list[Action]:
        """Return the agent's next actions in order. Raises the agent's errors."""
        self._llm.last_event = None
        if self._recorded is None:
            self._recorded = deepcopy(state.extra_data)
        if self._blocking is None:
            result = await cast("Awaitable[Step]", self._agent.step(state))
        else:
            result = await self._in_thread(self._blocking, state)
        actions = [result] if isinstance(result, Action) else list(result)
        return [a if a.completion else a.with_fields(completion=self._llm.last_event) for a in actions]

    def changed_data(self, state: State) -> list[AgentDataEvent]:
        """Return the event for ``state.extra_data`` if a step changed it. Raises ValidationError if it is not JSON."""
        if state.extra_data == self._recorded:
            return []
        event = AgentDataEvent(data=state.extra_data)
        self._recorded = deepcopy(event.data)
        return [event.model_copy(deep=True)]

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
