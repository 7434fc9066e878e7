"""Actions that wait for an observation: which end a task, and what becomes of those nobody will carry out."""

from __future__ import annotations

from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    ForkAction,
    MessageAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import ErrorObservation

NOT_RUN = "Not executed: the session was interrupted before it began."
CRASHED = "The platform stopped while this ran; whether it took effect is not known. Look before doing it again."


def ends(action: Action) -> bool:
    """Tell whether the agent has nothing to do after this action, until somebody speaks to it."""
    waits = isinstance(action, MessageAction) and action.wait_for_response
    return waits or isinstance(action, AgentFinishAction | AgentRejectAction)


def waits_for_user(root: State) -> bool:
    """Tell whether the session stands still for a limit to be raised, or for the answer to what a subtask asks."""
    limited = root.agent_state == "paused" and root.change is not None and root.change.reason == "limit"
    return limited or root.agent_state == "awaiting_user_confirmation"


def abandoned(root: State, state: State) -> list[Action]:
    """Return the actions that nobody will carry out any more: those before the first that is to be gone on with.

    Gone on with are subtasks, and what the user is asked about or has answered.
    """
    found: list[Action] = []
    for action in state.pending:
        asked = action.id in root.totals.asked or action.id in root.totals.approvals
        if asked or isinstance(action, AgentDelegateAction | ForkAction):
            break
        found.append(action)
    return found


def not_run() -> Observation:
    """Return the observation of an action that was never begun."""
    return ErrorObservation(content=NOT_RUN, error_id="interrupted")


def crashed() -> Observation:
    """Return the observation of an action that may have begun in a process that is gone."""
    return ErrorObservation(content=CRASHED, error_id="crashed")
