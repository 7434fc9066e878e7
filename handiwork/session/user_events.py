"""Turn the user's answers, given at a question or by a command, into events of the log."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.state import State
from handiwork.events.action import ChangeAgentStateAction, CmdRunAction, IPythonRunCellAction, MessageAction
from handiwork.events.base import Action, Event
from handiwork.events.describe import amount_text
from handiwork.events.observation import AgentStateChangedObservation
from handiwork.events.record import (
    ApprovalEvent,
    CondensationEvent,
    Limits,
    NetworkAllowed,
    PermissionsRevoked,
    SettingsChanged,
)
from handiwork.log.eventlog import EventLog
from handiwork.sandbox.egress.hosts import parse
from handiwork.session.approval.project import Permissions
from handiwork.session.approval.rules import rule_for
from handiwork.session.policies.budget import LimitName, LimitReachedError, check_model_budget, check_step_budget

TAKEN_BACK = "(The last {} steps repeated themselves and were taken back. Try something else.)"
PLAN_ACCEPTED = "I accept the plan. Carry it out."
PAGE = 500
"""Events read at a time."""


async def state_of(log: EventLog) -> State:
    """Return the session's current state."""
    state = State()
    while page := await log.read(after=state.last_id, limit=PAGE):
        for event in page:
            state.apply(event)
    return state


def actions_to_approve(state: State) -> list[Action]:
    """Return the actions that wait for the user's approval, in order."""
    pending = {action.id: action for part in state.tree() for action in part.pending}
    return [pending[number] for number in sorted(state.totals.asked) if number in pending]


async def approval_reasons(log: EventLog, actions: list[Action]) -> dict[int, str]:
    """Return the reason for each question to the user, by the action's id."""
    reasons: dict[int, str] = {}
    for event in await log.read(after=min((action.id for action in actions), default=0)):
        if isinstance(event, AgentStateChangedObservation) and event.agent_state == "awaiting_user_confirmation":
            reasons[event.cause or 0] = event.content
    return reasons


def approval(action: Action, allowed: bool, comment: str = "", always: bool = False) -> ApprovalEvent:
    """Return the user's answer; ``always`` adds the rule that allows this action and similar ones from now on."""
    rule = rule_for(action) if always else None
    return ApprovalEvent(action=action.id, allowed=allowed, comment=comment, rule=rule, source="user")


def network_allowed(hosts: Sequence[str], *, once: bool = False) -> NetworkAllowed:
    """Return the event that lets the sandbox reach these hosts. Raises ValueError for an invalid host.

    With ``once``, until the end of the action during which the sandbox first reaches one of them.
    """
    patterns = [pattern.text for host in hosts for pattern in parse(host)]
    return NetworkAllowed(hosts=tuple(dict.fromkeys(patterns)), once=once, source="user")


def permissions_revoked(permissions: Permissions) -> PermissionsRevoked:
    """Return the event that takes rules and hosts back."""
    return PermissionsRevoked(rules=permissions.rules, hosts=permissions.hosts, source="user")


def interrupting(message: MessageAction) -> tuple[Event, ...]:
    """Return the events that stop the current action and the actions planned after it, and give the agent a message.

    They must reach the log together. The message alone would wait for the end of the current actions.
    """
    return ChangeAgentStateAction(agent_state="paused", source="user"), message


def proposes_plan(state: State) -> bool:
    """Return whether the agent waits for the user to accept its plan."""
    return bool(state.totals.plan_mode) and state.agent_state == "awaiting_user_input"


def accepted_plan(state: State, comment: str = "") -> tuple[Event, ...]:
    """Return the events that end plan mode and tell the agent to carry out its plan. They reach the log together."""
    text = f"{PLAN_ACCEPTED} {comment}".rstrip()
    message = MessageAction(content=text, source="user", subtask=state.active)
    return SettingsChanged(plan_mode=False, source="user"), message


async def running_commands(log: EventLog) -> list[str]:
    """Return the running commands, which could reach a newly allowed host without an approval.

    The list is empty if the session needs no approvals, or if no process runs it.
    """
    state = await state_of(log)
    if state.totals.confirmation == "never" or await log.holder() is None:
        return []
    actions = [action for part in state.tree() for action in part.pending if action.id not in state.totals.asked]
    running = [action.command for action in actions if isinstance(action, CmdRunAction)]
    cells = [action.code for action in actions if isinstance(action, IPythonRunCellAction)]
    jobs = [f"{handle}: {command}" if handle else command for (_, handle), command in state.totals.jobs.items()]
    return [*jobs, *running, *cells]


def is_stuck(state: State) -> bool:
    """Return whether the session was paused because the agent repeats itself."""
    return state.loop is not None and state.change is not None and state.change.reason == "stuck"


def rewind_event(state: State) -> CondensationEvent:
    """Return the event that drops the repetition from a stuck agent's history; files stay as they are."""
    assert state.loop is not None
    first = state.loop.first
    actions = [action for action, _ in state.history if action.id >= first and action.source == "agent"]
    steps = len({action.completion for action in actions if action.completion} or actions)
    summary = TAKEN_BACK.format(steps)
    return CondensationEvent(first=first, last=state.last_id, how="rewind", summary=summary, source="user")


def reached_limit(state: State) -> LimitName:
    """Return the limit that the session has reached."""
    try:
        check_model_budget(state)  # first: a session whose money is spent needs more than steps
        check_step_budget(state)
    except LimitReachedError as error:
        return error.limit
    return "cost" if state.limits.cost is not None else "iterations"


def spending(state: State) -> dict[LimitName, float]:
    """Return the amount that counts against each limit; the cost includes the estimate of the next call."""
    return {
        "iterations": state.iteration,
        "cost": state.cost + state.totals.last_cost,
        "tokens": state.usage.total,
        "time": state.time,
    }


def raised_limit(state: State, name: LimitName, first: Limits) -> float:
    """Return the limit, raised in steps of its ``first`` value until the session can run again."""
    limit = getattr(state.limits, name)
    step = getattr(first, name) or limit
    spent = spending(state)[name]
    limit += step
    while limit <= spent:
        limit += step
    return limit


def changed_limit(state: State, name: LimitName, value: float | None) -> SettingsChanged:
    """Return the event that sets a limit; None removes it. Raises ValueError if it is already exceeded."""
    if value is not None:
        value = int(value) if name in ("iterations", "tokens") else value
        if value <= (spent := spending(state)[name]):
            raise ValueError(f"it must be more than {amount_text(name, spent)}")
    return SettingsChanged(limits=state.limits.model_copy(update={name: value}), source="user")
