"""The loop: an agent's step returns actions, the sandbox returns observations, the log records both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from handiwork.agents.base import Agent, MalformedReplyError
from handiwork.agents.interface import ExtraDataError
from handiwork.agents.state import State
from handiwork.errors import SandboxError
from handiwork.events.action import AgentState
from handiwork.events.base import Action, Observation
from handiwork.events.observation import ErrorObservation, StateReason
from handiwork.events.record import AgentDataEvent
from handiwork.llm.errors import ContextWindowError, LLMError, RequestRejectedError
from handiwork.log.errors import LogError
from handiwork.session.approval.gate import Gate
from handiwork.session.hooks.runner import Hooks, newest_message
from handiwork.session.policies.budget import LimitReachedError, check_step_budget, time_left
from handiwork.session.policies.condense import CannotCondenseError, Condenser
from handiwork.session.policies.repetition import RETRY_TEMPERATURE, find_loop
from handiwork.session.steps.agent_runner import AgentRunner
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.journal import Journal, ReaderGoneError
from handiwork.session.steps.live import OutputDelta
from handiwork.session.steps.model_switch import Models
from handiwork.session.steps.pending import Over, abandoned_actions, ends, never, not_run, waits_for_user
from handiwork.session.steps.recorded_llm import RecordedLLM

Answer = Callable[["Loop", Action], Awaitable[Observation | None]]
"""Answers an action that needs no sandbox; returns None while its answer is pending."""


@dataclass(frozen=True)
class LoopContext:
    """The parts that the loops of a task and its subtasks share."""

    journal: Journal
    models: Models
    gate: Gate
    answer: Answer
    hooks: Hooks
    over: Over = never


class Loop:
    """Runs the agent of one task or subtask in one sandbox until the task ends or the session stops."""

    def __init__(self, context: LoopContext, subtask: int, agent: type[Agent], executor: Executor) -> None:
        self.context, self.subtask, self.executor = context, subtask, executor
        self.journal = context.journal
        self._llm = RecordedLLM(context.journal, context.models, subtask, agent.model)
        self._runner = AgentRunner(agent, self._llm)
        self._condenser = Condenser(self._llm, sends_history=agent.sends_history)

    @property
    def state(self) -> State:
        """The state of this task or subtask."""
        return self.root.of(self.subtask)

    @property
    def root(self) -> State:
        """The state of the whole session."""
        return self.journal.state

    @property
    def is_running(self) -> bool:
        """True while both the session and this task run."""
        return self.root.agent_state == "running" and self.state.agent_state == "running"

    @property
    def may_act(self) -> bool:
        """True while actions may run, including those already returned when the session began to wait for the user."""
        remaining, waits = time_left(self.root), waits_for_user(self.root)
        return self.is_running or (
            waits and self.state.agent_state == "running" and (remaining is None or remaining > 0)
        )

    async def run(self) -> None:
        """Run until the task ends or the session stops; record errors in the log."""
        await self.journal.catch_up()
        while self.is_running:
            try:
                if not self.state.pending:
                    await self._limited_step()
                await self._act()
            except LimitReachedError as error:
                await self.journal.change("paused", "limit", str(error))
            except CannotCondenseError as error:
                await self._fail("paused", "context", str(error))
            except RequestRejectedError as error:
                await self._fail("error", "model", str(error))
            except LLMError as error:
                # The whole session stops, so that every subtask can resume later.
                await self.journal.change("error", "model", str(error))
            except SandboxError as error:
                await self.journal.change("error", "sandbox", str(error))
            except ExtraDataError as error:
                await self.journal.change("error", "agent", str(error))
            except (LogError, ReaderGoneError):
                raise
            except Exception as error:  # noqa: BLE001 - an agent may raise anything; its session must stay whole
                await self._fail("error", "agent", f"{self._runner.name} raised {type(error).__name__}: {error}")
        for action in abandoned_actions(self.root, self.state):
            await self.journal.append(not_run().with_fields(cause=action.id, subtask=self.subtask))

    async def _fail(self, agent_state: AgentState, reason: StateReason, text: str) -> None:
        """Record that the task cannot continue; a subtask ends in an error, which its parent receives."""
        await self.journal.change(agent_state if self.subtask == 0 else "error", reason, text, self.subtask)

    async def _limited_step(self) -> None:
        """Take a step; at a limit, an agent that ends its task itself does so."""
        try:
            await self._step()
        except (LimitReachedError, CannotCondenseError) as error:
            if not (actions := self._runner.at_limit(self.state, error)):
                raise
            await self._take(actions, [], newest_message(self.state))

    async def _step(self) -> None:
        """Get the agent's next actions and run them."""
        check_step_budget(self.root)
        if await self._looping():
            return
        await self.journal.append(*await self._runner.begin_step(self.executor, self.root, self.subtask))
        await self._condense()
        if not self.is_running:
            return
        heard = newest_message(self.state)
        try:
            actions = await self.journal.interrupt.unless_set(self._runner.step(self.state), time_left(self.root))
        except MalformedReplyError as error:
            malformed = ErrorObservation(content=str(error), error_id="malformed", cause=self._llm.last_event)
            await self.journal.append(*self._runner.changed_data(), malformed.with_fields(subtask=self.subtask))
        except ContextWindowError:
            await self._condense(overflow=True)
        else:
            if actions is not None:
                await self._take(actions, self._runner.changed_data(), heard)

    async def _condense(self, *, overflow: bool = False) -> None:
        """Condense the history if it no longer fits the model's context window."""
        condensing = self._condenser.condense(self.state, overflow=overflow)
        if condensed := await self.journal.interrupt.unless_set(condensing, time_left(self.root)):
            await self.journal.append(condensed.with_fields(subtask=self.subtask))

    async def _take(self, actions: list[Action], data: list[AgentDataEvent], heard: int) -> None:
        """Append and run the actions; drop an end if one has failed, or the user has written after ``heard``."""
        actions = [action.with_fields(subtask=self.subtask) for action in actions]
        first_end = next((n for n, action in enumerate(actions) if ends(action)), len(actions))
        if first_end or not actions:
            await self.journal.append(*data, *actions[:first_end])
            await self._act()
            data = []
        await self.journal.catch_up()
        is_last = newest_message(self.state) == heard and not self.state.pending
        has_failed = first_end > 0 and self.state.has_failed(actions[0].completion)
        if first_end < len(actions) and self.may_act and is_last and not has_failed:
            await self.journal.append(*data, *await self.context.hooks.before_end(self.executor, actions[first_end]))

    async def _act(self) -> None:
        """Run the pending actions in order while the session runs."""
        while self.may_act and (pending := self.state.pending):
            action = pending[0]
            observed = await self.context.hooks.around(self.executor, action, self._observation)
            if not observed:
                return
            # Append all together, so that the log up to an observation gives the files' state after it.
            await self.journal.append(*(await self.executor.snapshot() if action.runnable else []), *observed)
            if self.is_running and await self.context.over():
                await self.journal.change("finished", "over", "The task is at its end.")

    async def _observation(self, action: Action) -> Observation | None:
        """Return the action's observation; None while the user or a subtask has not answered."""
        if not action.runnable:
            return await self.context.answer(self, action)
        verdict = await self.context.gate.verdict(self.journal, action, self.executor.inspect)
        if verdict != "allowed":
            return None if verdict == "asked" else verdict
        try:
            with self.journal.stream_redacted(lambda text: OutputDelta(action.id, text)) as show:
                seconds = self._runner.seconds(time_left(self.root))
                return await self.executor.execute(action, seconds, show, self._llm.ask_about)
        except SandboxError as error:
            lost = ErrorObservation(content=str(error), error_id="sandbox_lost", cause=action.id)
            await self.journal.append(lost.with_fields(subtask=self.subtask))
            raise

    async def _looping(self) -> bool:
        """Tell the agent that it repeats itself; if the loop persists, pause the session or end the subtask."""
        state, loop = self.state, find_loop(self.state.history)
        self._llm.retry_temperature = RETRY_TEMPERATURE if loop else None
        if loop is None:
            return False
        if loop.is_new(state.loop):
            await self.journal.append(loop.event.with_fields(subtask=self.subtask))
        elif loop.persists(state.loop, state.history):
            await self._fail("paused", "stuck", loop.question)
        return not self.is_running
