"""The approval gate: holds actions that need the user's approval."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from handiwork.events.action import AgentState
from handiwork.events.base import Action
from handiwork.events.observation import AgentStateChangedObservation, UserRejectObservation
from handiwork.session.approval.rules import ExecutionContext, needs_approval
from handiwork.session.steps.journal import Journal

DENIED = "The user did not allow it."


class Gate:
    """Allows an action, holds it until the user answers, or rejects it."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context

    async def verdict(self, journal: Journal, action: Action) -> Literal["allowed", "asked"] | UserRejectObservation:
        """Return "allowed", "asked" if the action waits for the user's answer, or the user's rejection."""
        totals = journal.state.totals
        if answer := totals.approvals.get(action.id):
            if not answer.allowed:
                return UserRejectObservation(content=answer.comment or DENIED)
            await journal.append(_state_change("running", "allowed by the user", action))
            return "allowed"
        if action.id in totals.asked:
            # If the session resumed without an answer, the user wrote a message instead.
            waits = journal.state.agent_state == "awaiting_user_confirmation"
            return "asked" if waits else UserRejectObservation(content=DENIED)
        network, unasked = tuple(totals.network), totals.unasked
        context = replace(self._context, network=network, workspace=totals.workspace, unasked=unasked)
        reason = needs_approval(action, totals.confirmation, context, totals.rules)
        if reason is None:
            return "allowed"
        await journal.append(_state_change("awaiting_user_confirmation", reason, action))
        return "asked"


def _state_change(agent_state: AgentState, reason: str, action: Action) -> AgentStateChangedObservation:
    return AgentStateChangedObservation(agent_state=agent_state, reason="user", content=reason, cause=action.id)
