"""The loop: an agent's step gives actions, the sandbox gives observations, the log keeps both."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

from pydantic import JsonValue

from handiwork.agents.base import Agent, MalformedReplyError
from handiwork.agents.state import State
from handiwork.events.action import AgentState, AgentThinkAction, ChangeAgentStateAction, MessageAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import AgentStateChangedObservation, ErrorObservation, StateReason
from handiwork.events.record import Limits, SessionStarted, StepStarted
from handiwork.llm.errors import LLMError
from handiwork.llm.types import LLM
from handiwork.log.errors import LogError
from handiwork.log.eventlog import EventLog
from handiwork.sandbox.base import Sandbox, SandboxError
from handiwork.session.budget import model_budget_reached, step_budget_reached, time_left
from handiwork.session.calls import LimitReachedError, RecordedLLM
from handiwork.session.interrupt import Interrupt
from handiwork.session.stepper import Stepper
from handiwork.session.watch import OutputDelta, TextDelta, Watch

INTERRUPTS, GRACE = 5, 2.0
"""How often an action is interrupted before it is given up, and the seconds it has each time to end."""

CRASHED = "The platform stopped while this ran; whether it took effect is not known. Look before doing it again."
NOT_RUN = "Not executed: the session was interrupted before it began."
NOT_STOPPED = "It was interrupted but could not be stopped; its output is lost."
LOST = "The sandbox was lost ({}) and has been started again; files are as they were, running programs are gone."


class Session:
    """One agent at work in one sandbox. ``run`` as often as there is something to do; the log is all it keeps."""

    def __init__(
        self,
        log: EventLog,
        agent: type[Agent],
        llm: LLM,
        sandbox: Sandbox,
        limits: Limits,
        watch: Watch,
        settings: dict[str, JsonValue] | None = None,
    ) -> None:
        self.state = State()
        self._log, self._sandbox, self._watch = log, sandbox, watch
        recorded = RecordedLLM(
            llm, self._append, lambda: model_budget_reached(self.state), lambda text: watch(TextDelta(text))
        )
        self._stepper = Stepper(agent, recorded)
        self._recorded = recorded
        self._started = SessionStarted(
            agent=agent.__name__,
            model=llm.name,
            sandbox=sandbox.name,
            workspace=sandbox.workspace,
            limits=limits,
            settings=settings or {},
        )
        self._ready: asyncio.Task[None] | None = None
        self._interrupted = Interrupt()
        self._folding = asyncio.Lock()

    async def run(self, message: str | None = None) -> State:
        """Go on from the log, with the user's message if there is one, until the agent ends, waits or is paused.

        Raises LeaseHeldError if another process runs the session.
        """
        async with self._log.lease():
            await self._open(message)
            listener = asyncio.create_task(self._listen())
            if self._ready is None:
                self._ready = asyncio.create_task(self._sandbox.start())
            try:
                await self._loop()
            finally:
                listener.cancel()
        return self.state

    async def close(self) -> None:
        """End the sandbox."""
        if self._ready is not None:
            self._ready.cancel()
            with suppress(asyncio.CancelledError, SandboxError):
                await self._ready
        await self._sandbox.close()

    async def _open(self, message: str | None) -> None:
        await self._catch_up()
        await self._append(self._started.placed(resumed=self.state.last_id > 0))
        for action in self.state.pending:
            await self._append(ErrorObservation(content=CRASHED, error_id="crashed", cause=action.id))
        if message is not None:
            await self._append(MessageAction(content=message, source="user"))
        elif self.state.agent_state in ("paused", "error"):
            await self._append(ChangeAgentStateAction(agent_state="running", source="user"))

    async def _loop(self) -> None:
        while True:
            self._interrupted.clear()
            await self._catch_up()
            if self.state.agent_state != "running":
                return
            try:
                await self._step()
            except LimitReachedError as error:
                await self._change("paused", "limit", str(error))
            except LLMError as error:
                await self._change("error", "model", str(error))
            except SandboxError as error:
                self._ready = None
                await self._change("error", "sandbox", str(error))
            except LogError:
                raise
            except Exception as error:  # noqa: BLE001 - an agent may raise anything; its session must stay whole
                await self._change("error", "agent", f"{self._started.agent} raised {type(error).__name__}: {error}")

    async def _step(self) -> None:
        if why := step_budget_reached(self.state):
            raise LimitReachedError(why)
        await self._append(StepStarted())
        try:
            actions = await self._query()
        except MalformedReplyError as error:
            (thought,) = await self._append(AgentThinkAction(completion=self._recorded.last_event))
            await self._append(ErrorObservation(content=str(error), error_id="malformed", cause=thought.id))
            return
        for action in actions:
            (stored,) = await self._append(action)
            try:
                observation = await self._act(cast("Action", stored))
            except SandboxError as error:
                await self._append(ErrorObservation(content=str(error), error_id="sandbox_lost", cause=stored.id))
                raise
            if observation is not None:
                await self._append(observation.placed(cause=stored.id))

    async def _query(self) -> list[Action]:
        """Return the agent's next actions, none where it was interrupted."""
        step = asyncio.create_task(self._stepper.step(self.state))
        if not await self._interrupted.race(step, time_left(self.state)):
            step.cancel()
            with suppress(asyncio.CancelledError):
                await step
            return []
        return step.result()

    async def _act(self, action: Action) -> Observation | None:
        if not action.runnable:
            return None
        if self._ready is not None and await self._interrupted.race(self._ready, time_left(self.state)):
            self._ready.result()
        if self._interrupted.is_set() or self._ready is None or not self._ready.done():
            return ErrorObservation(content=NOT_RUN, error_id="interrupted")
        try:
            return await self._execute(action)
        except SandboxError as error:
            await self._sandbox.close()
            await self._sandbox.start()
            return ErrorObservation(content=LOST.format(error), error_id="sandbox_lost")

    async def _execute(self, action: Action) -> Observation:
        run = asyncio.create_task(self._sandbox.execute(action, lambda text: self._watch(OutputDelta(action.id, text))))
        if await self._interrupted.race(run, time_left(self.state)):
            return run.result()
        for _ in range(INTERRUPTS):
            await self._sandbox.interrupt()
            if await asyncio.wait({run}, timeout=GRACE) != (set(), {run}):
                return run.result()
        run.cancel()
        return ErrorObservation(content=NOT_STOPPED, error_id="interrupted")

    async def _listen(self) -> None:
        async for event in self._log.follow(after=self.state.last_id):
            if isinstance(event, ChangeAgentStateAction) and event.agent_state in ("paused", "stopped"):
                self._interrupted.set()

    async def _change(self, agent_state: AgentState, reason: StateReason, why: str) -> None:
        await self._append(AgentStateChangedObservation(agent_state=agent_state, reason=reason, content=why))

    async def _append(self, *events: Event) -> list[Event]:
        stored = await self._log.append(*events)
        await self._catch_up(stored)
        return stored

    async def _catch_up(self, new: list[Event] | None = None) -> None:
        """Fold what is new in the log: what was just appended, and what others put before it."""
        async with self._folding:
            if new is None or (new and new[0].id > self.state.last_id + 1):
                new = await self._log.read(after=self.state.last_id)
            for event in new:
                if event.id > self.state.last_id:
                    self.state.apply(event)
                    self._watch(event)
