"""The history that an agent sees, and its condensation."""

from __future__ import annotations

from typing import TypeGuard

from handiwork.events.action import MessageAction
from handiwork.events.base import Action, Event, Observation, Part
from handiwork.events.observation import (
    CmdOutputObservation,
    ForkObservation,
    IPythonRunCellObservation,
    MCPCallObservation,
)
from handiwork.events.overview import WorkspaceOverviewObservation
from handiwork.events.record import CondensationEvent

History = list[tuple[Action, Observation | None]]
"""(action, observation) pairs in the order of the actions; the observation is None until it arrives."""

SHORT, LONG = 200, 4_000
"""Maximum length in characters of an observation that a collapse leaves unchanged, and of a later message of the user
that notes leave in place."""

SENT_BACK = "The user's hook {hook!r} does not let you finish yet ({outcome})."
"""The first line of the message by which a hook sends an agent back from its finish."""


def is_sent_back(action: Action) -> TypeGuard[MessageAction]:
    """Return whether the action is the message of a hook that does not let the agent finish."""
    start = SENT_BACK.partition("{")[0]
    return isinstance(action, MessageAction) and action.source == "environment" and action.content.startswith(start)


def is_from_user(event: Event) -> TypeGuard[MessageAction]:
    """Return whether the event is a message of the user; a delegate's task is one."""
    return isinstance(event, MessageAction) and event.source == "user"


def messages_of_user(history: History) -> list[MessageAction]:
    """Return the user's messages; those of a delegate are its task."""
    return [action for action, _ in history if is_from_user(action)]


def is_told(action: Action) -> bool:
    """Return whether the action is a message of the user, or one of the platform, like knowledge, that is not long."""
    if not isinstance(action, MessageAction) or action.source == "user":
        return isinstance(action, MessageAction)
    return action.source == "environment" and action.completion is None and len(action.content) <= LONG


def lasting(history: History, last: int) -> set[int]:
    """Return the ids of the actions that notes on the actions up to the id ``last`` do not replace.

    They are the task, the user's newest message up to there unless it is long, and the overviews of the workspace.
    """
    messages = messages_of_user(history)
    newest = [action for action in messages if action.id <= last][-1:]
    overviews = {action.id for action, observation in history if isinstance(observation, WorkspaceOverviewObservation)}
    return overviews | {action.id for action in messages[:1]} | {a.id for a in newest if len(a.content) <= LONG}


def condense(history: History, event: CondensationEvent, waiting: frozenset[int]) -> History:
    """Return the history after the condensation; keep what is ``lasting``, and the actions in ``waiting``."""
    if event.how == "collapse":
        return [(a, _collapse(o)) if o and event.first <= a.id <= event.last else (a, o) for a, o in history]
    # The id of the last replaced action keeps ids rising; a damaged row may hold a negative one.
    summary = MessageAction(
        content=event.summary, source="environment", id=max(event.last, 0), timestamp=event.timestamp
    )
    kept = lasting(history, event.last) | waiting
    until = [pair for pair in history if pair[0].id <= event.last]
    before = [pair for pair in until if pair[0].id < event.first or pair[0].id in kept]
    return [*before, (summary, None), *(pair for pair in history if pair[0].id > event.last)]


def _collapse(observation: Observation) -> Observation:
    """Return a plain Observation with the first line of the text; one that is short, without pictures, is unchanged.

    A fork's changes are left out. The overview of the workspace stays whole, because it tells the project's check.
    """
    if isinstance(observation, ForkObservation) and len(observation.text) <= SHORT:
        return observation.with_fields(
            outcomes=tuple(outcome.model_copy(update={"diff": ""}) for outcome in observation.outcomes)
        )
    text = observation.text
    pictures = len(pictures_of(observation))
    if (len(text) <= SHORT and not pictures) or isinstance(observation, WorkspaceOverviewObservation):
        return observation
    line = text.lstrip("\n").split("\n", 1)[0][: SHORT // 2]
    code = f", exit code {observation.exit_code}" if isinstance(observation, CmdOutputObservation) else ""
    code += f", pictures: {pictures}" if pictures else ""
    handle = f", the whole is output {observation.blob[:12]}" if observation.blob else ""
    content = f"{line}\n[... {observation.size or len(text.encode())} bytes in all{code}; left out here{handle} ...]"
    return Observation(
        content=content,
        id=observation.id,
        cause=observation.cause,
        timestamp=observation.timestamp,
        subtask=observation.subtask,
    )


def pictures_of(observation: Observation | None) -> tuple[Part, ...]:
    """Return the pictures of an observation that the model sees."""
    return observation.images if isinstance(observation, IPythonRunCellObservation | MCPCallObservation) else ()
