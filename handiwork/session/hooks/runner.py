"""Hooks at their points of a session: around actions, before a finish, at the begin and the end.

Every run of a hook is a HookEvent. ``State.totals.hooks`` is folded from those events, so the facts that a hook has
run, let an action pass or sent the agent back survive a crash.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import JsonValue

from handiwork.agents.history import SENT_BACK, is_from_user
from handiwork.agents.state import ENDED, State
from handiwork.events.action import AgentFinishAction, MessageAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.codec import to_dict
from handiwork.events.observation import HookRejectObservation, UserRejectObservation
from handiwork.events.record import HookEffect, HookEvent, HookPoint, UnusedHooks
from handiwork.hooks import Hook
from handiwork.session.hooks.command import HookResult, run_hook
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.journal import Journal
from handiwork.session.steps.live import Status

REFUSED = "The user's hook {hook!r} refused this action ({outcome}); it was not carried out."
INTERRUPTED = "The interrupt ended a hook; the agent was done before."

STATUS_AFTER = 2.0
"""Seconds after which the user is told which hook is running."""

Perform = Callable[[Action], Awaitable[Observation | None]]
"""Carries out an action; returns None while its answer is pending."""


class Hooks:
    """The user's hooks in one session, with its delegates and children.

    ``workspace`` is the user's directory: hooks on the user's machine get this path, hooks in the sandbox the path
    inside. A hook that times out, or cannot start, counts like one that does not exit with 0.
    """

    def __init__(self, journal: Journal, hooks: Sequence[Hook], workspace: str) -> None:
        self._journal, self._hooks, self._workspace = journal, hooks, workspace

    async def around(self, executor: Executor, action: Action, perform: Perform) -> list[Event]:
        """Carry out the action between its hooks; return its observation and the records of the hooks after it.

        The observation includes the output of those hooks. A hook before the action that does not exit with 0 refuses
        it. There are no events if the action's answer is pending, or on an interrupt before it began.
        """
        place = {"cause": action.id, "subtask": action.subtask}
        if not self._hooks:
            observation = await perform(action)
            return [] if observation is None else [observation.with_fields(**place)]
        tool = self._tool(action)
        passed = self._journal.state.totals.hooks.passed.get(action.id, [])
        for hook in self._at("before_action"):
            if hook.title in passed or not hook.matches(action, tool):
                continue
            event = await self._run(hook, executor, action, "refused", tool=tool)
            await self._journal.append(event)
            if event.problem == "interrupted":
                return []
            if event.effect == "refused":
                return [HookRejectObservation(hook=hook.title, content=_message(REFUSED, event)).with_fields(**place)]
        observation = await perform(action)
        records: list[Event] = []
        for hook in self._at("after_action"):
            if observation is None or isinstance(observation, UserRejectObservation):
                break
            if hook.matches(action, tool) and not self._journal.interrupt.is_set():
                event = await self._run(hook, executor, action, tool=tool, observation=observation)
                observation = _with_output(observation, event)
                records.append(event)
        return [] if observation is None else [observation.with_fields(**place), *records]

    async def before_end(self, executor: Executor, action: Action) -> list[Event]:
        """Return the events for an action that ends a task: the action, or the message that sends the agent back.

        A hook may send the agent back ``max_refusals`` times in a row; further refusals do not count. There are no
        events on an interrupt, or if the user has sent a message meanwhile: the agent then takes another step.
        """
        if not isinstance(action, AgentFinishAction):
            return [action]
        state = self._journal.state.of(action.subtask)
        newest = newest_message(state)
        for hook in self._at("before_finish"):
            if not hook.gates(state.agent, action.subtask):
                continue
            before = state.totals.hooks.sent_back.get((action.subtask, hook.title), 0)
            effect = "sent_back" if before < hook.max_refusals else "let_through"
            event = await self._run_at_end(hook, executor, action, effect)
            if event.problem == "interrupted" or newest_message(state) != newest:
                return []
            if event.effect == "sent_back":
                message = MessageAction(content=_message(SENT_BACK, event), source="environment")
                same = ("thought", "completion", "tool_call_id", "subtask")
                return [message.with_fields(**{name: getattr(action, name) for name in same})]
        return [action]

    async def start(self, executor: Executor) -> None:
        """Run the hooks of the session's start that have not run."""
        for hook in self._at("session_start"):
            state = self._journal.state
            if state.agent_state == "running" and (hook.event, hook.title) not in state.totals.hooks.done:
                await self._run_at_end(hook, executor)

    async def end(self, executor: Executor) -> None:
        """Run the hooks of the session's end if it has ended, and record those that never ran."""
        state = self._journal.state
        if not self._hooks or state.agent_state not in ENDED:
            return
        ended = state.agent_state
        if ended == "stopped":
            self._journal.interrupt.clear()  # the user has stopped the agent; another interrupt ends the hooks
        for hook in self._at("session_end"):
            if hook.title not in state.totals.hooks.ended and not self._journal.interrupt.is_set():
                await self._run_at_end(hook, executor, state=ended, error=state.last_error)
        ran = state.totals.hooks.run
        unused = [f"{hook.title} ({hook.event})" for hook in self._hooks if (hook.event, hook.title) not in ran]
        if unused and not state.totals.hooks.told:
            await self._journal.append(UnusedHooks(hooks=tuple(unused)))
        if state.agent_state == "paused" and ended in ("finished", "rejected"):
            await self._journal.change(ended, "user", INTERRUPTED)

    def _at(self, point: HookPoint) -> list[Hook]:
        return [hook for hook in self._hooks if hook.event == point]

    async def _run_at_end(
        self, hook: Hook, executor: Executor, action: Action | None = None, effect: HookEffect = "", **facts: Any
    ) -> HookEvent:
        """Run a hook at an end of the task, and append its record, after a snapshot of the files it has changed."""
        event = await self._run(hook, executor, action, effect, **facts)
        await self._journal.append(*(await executor.snapshot() if hook.where == "sandbox" else []), event)
        return event

    async def _run(
        self, hook: Hook, executor: Executor, action: Action | None, effect: HookEffect = "", **facts: Any
    ) -> HookEvent:
        """Run a hook and return its record; ``effect`` is that of an exit code other than 0."""
        journal, redactor = self._journal, self._journal.log.redactor
        subtask = 0 if action is None else action.subtask
        workspace = self._workspace if hook.where == "host" else executor.sandbox.workspace
        if isinstance(observation := facts.get("observation"), Observation):
            facts["observation"] = redactor.ends(observation)
        agent = journal.state.of(subtask).agent
        text = redactor.json(payload(hook, journal.log.id, workspace, agent, subtask, action, **facts))
        shown = asyncio.get_running_loop().call_later(
            STATUS_AFTER, journal.show, Status(f"running the hook {hook.title}")
        )
        try:
            result = await run_hook(hook, text, executor, journal.interrupt, redactor)
        finally:
            shown.cancel()
        cause = None if action is None else action.id or None
        return hook_event(hook, result, effect).with_fields(subtask=subtask, cause=cause)

    def _tool(self, action: Action) -> str:
        """Return the name by which the model called the action, "" if it is not known."""
        completion = self._journal.state.of(action.subtask).completions.get(action.completion or 0)
        calls: Any = [] if completion is None else completion.response.get("tool_calls") or []
        return next((call["name"] for call in calls if call.get("id") == action.tool_call_id), "")


def payload(
    hook: Hook,
    session: str,
    workspace: str,
    agent: str,
    subtask: int = 0,
    action: Action | None = None,
    observation: Observation | None = None,
    **facts: JsonValue,
) -> str:
    """Return the JSON object that a hook's command reads from its standard input."""
    fields: dict[str, Any] = {"session": session, "workspace": workspace, "event": hook.event, "hook": hook.title}
    fields |= {"agent": agent, "subtask": subtask, **facts}
    if action is not None:
        fields["action"] = to_dict(action)
    if observation is not None:
        fields["observation"] = to_dict(observation)
    return json.dumps(fields, ensure_ascii=False) + "\n"


def hook_event(hook: Hook, result: HookResult, effect: HookEffect = "") -> HookEvent:
    """Return the record of a hook's run; ``effect`` is that of an exit code other than 0."""
    return HookEvent(
        hook=hook.title,
        point=hook.event,
        where=hook.where,
        exit_code=result.exit_code,
        problem=result.problem,
        duration=round(result.duration, 3),
        effect="" if result.exit_code == 0 or result.problem == "interrupted" else effect,
        output=result.output,
    )


def newest_message(state: State) -> int:
    """Return the id of the user's newest message to the agent."""
    return next((a.id for a, _ in reversed(state.history) if is_from_user(a)), 0)


def _message(sentence: str, event: HookEvent) -> str:
    text = sentence.format(hook=event.hook, outcome=event.outcome)
    return f"{text}\n{event.output}".rstrip()


def _with_output(observation: Observation, event: HookEvent) -> Observation:
    """Return the observation with the hook's output below it; a hook that exits with 0 and prints nothing adds none."""
    if event.exit_code == 0 and not event.output:
        return observation
    last = "tail" if observation.blob else "content"
    before = getattr(observation, last)
    start = "\n" if before and not before.endswith("\n") else ""
    added = start + f"[hook {event.hook}: {event.outcome}]\n{event.output}".rstrip() + "\n"
    size = observation.size + len(added.encode(errors="replace")) if observation.size else 0
    return observation.with_fields(**{last: before + added, "size": size})
