"""The approval gate: holds actions that need the user's approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal

from pydantic import JsonValue

from handiwork.events.action import AgentState, BrowseInteractiveAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    NOT_ALLOWED,
    AgentStateChangedObservation,
    ErrorObservation,
    UserRejectObservation,
)
from handiwork.session.approval.browser_acts import irreversible_acts
from handiwork.session.approval.rules import ExecutionContext, needs_approval, only_browses, only_reads
from handiwork.session.steps.journal import Journal
from handiwork.session.steps.pending import not_run

IRREVERSIBLE = "It may be impossible to take back, so no rule allows it: {}."
PLANNING = (
    "Not executed: in plan mode only actions run that are known to change nothing, like reading files, searching, and "
    "commands such as cat, grep and ls. Read what you need, then finish with your plan as the message."
)
UNREADABLE = "The page could not be read, so it may be impossible to take back."

Inspect = Callable[[str], Awaitable[JsonValue]]
"""Returns the elements that browser calls would reach on the open page, None if they are unknown."""


class Gate:
    """Allows an action, holds it until the user answers, or rejects it."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context

    async def verdict(
        self, journal: Journal, action: Action, inspect: Inspect
    ) -> Literal["allowed", "asked"] | Observation:
        """Return "allowed", "asked" if the action waits for the user's answer, or the observation of a refusal."""
        totals = journal.state.totals
        answer = totals.approvals.get(action.id)
        if answer is not None and not answer.allowed:
            return UserRejectObservation(content=answer.comment or NOT_ALLOWED)
        if answer is None and action.id not in totals.asked and action.id < totals.interrupted:
            return not_run()  # a message that interrupted the session resumed it at once
        if totals.plan_mode and action.id not in totals.asked and not only_reads(action, self._context):
            return ErrorObservation(content=PLANNING, error_id="plan_mode")
        if answer is not None:
            await journal.append(_state_change("running", "allowed by the user", action))
            return "allowed"
        if action.id in totals.asked:
            # If the session resumed without an answer, the user wrote a message instead.
            waits = journal.state.agent_state == "awaiting_user_confirmation"
            return "asked" if waits else UserRejectObservation(content=NOT_ALLOWED)
        network, unasked = tuple(totals.network), totals.unasked
        context = replace(self._context, network=network, workspace=totals.workspace, unasked=unasked)
        reason = None
        if totals.confirmation != "never" and isinstance(action, BrowseInteractiveAction):
            reason = await _irreversible_reason(action, inspect)
        reason = reason or needs_approval(action, totals.confirmation, context, totals.rules)
        if reason is None:
            return "allowed"
        await journal.append(_state_change("awaiting_user_confirmation", reason, action))
        return "asked"


async def _irreversible_reason(action: BrowseInteractiveAction, inspect: Inspect) -> str | None:
    """Return why the action may be irreversible; None if its calls are known not to be."""
    if only_browses(action):
        return None
    inspected = await inspect(action.browser_actions)
    try:
        acts = irreversible_acts(inspected)
    except ValueError:
        return UNREADABLE
    return IRREVERSIBLE.format("; ".join(acts)) if acts else None


def _state_change(agent_state: AgentState, reason: str, action: Action) -> AgentStateChangedObservation:
    return AgentStateChangedObservation(agent_state=agent_state, reason="user", content=reason, cause=action.id)
