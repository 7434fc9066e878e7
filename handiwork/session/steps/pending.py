"""Pending actions: those that end a task, and the observations of those that will never run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

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
GIVEN_UP = "Given up: the user interrupted the session and wrote a message instead."
CRASHED = "The platform stopped while this ran; whether it took effect is not known. Look before doing it again."

Over = Callable[[], Awaitable[bool]]
"""Returns whether to end the task, regardless of the agent's plans."""


async def never() -> bool:
    """Return False: only the agent ends the task."""
    return False


def ends(action: Action) -> bool:
    """Return whether the agent stops after this action until it receives a message."""
    waits = isinstance(action, MessageAction) and action.wait_for_response
    return waits or isinstance(action, AgentFinishAction | AgentRejectAction)


def waits_for_user(root: State) -> bool:
    """Return whether the session waits for the user to raise a limit or to approve an action."""
    limited = root.agent_state == "paused" and root.change is not None and root.change.reason == "limit"
    return limited or root.agent_state == "awaiting_user_confirmation"


def abandoned_actions(root: State, state: State) -> list[Action]:
    """Return pending actions that will never run: all before the first action that can resume.

    Delegations, forks, and actions that await or have the user's answer can resume.
    """
    actions: list[Action] = []
    for action in state.pending:
        has_question = action.id in root.totals.asked or action.id in root.totals.approvals
        if has_question or isinstance(action, AgentDelegateAction | ForkAction):
            break
        actions.append(action)
    return actions


def not_run() -> Observation:
    """Return the observation of an action that never started."""
    return ErrorObservation(content=NOT_RUN, error_id="interrupted")


def given_up() -> Observation:
    """Return the observation of an action that waited in a subtask that the user has stopped."""
    return ErrorObservation(content=GIVEN_UP, error_id="interrupted")


def crashed() -> Observation:
    """Return the observation of an action that may have started in a process that has died."""
    return ErrorObservation(content=CRASHED, error_id="crashed")
