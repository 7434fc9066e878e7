"""The history that an agent sees, and its condensation."""

from __future__ import annotations

from handiwork.events.action import MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.overview import WorkspaceOverviewObservation
from handiwork.events.record import CondensationEvent

History = list[tuple[Action, Observation | None]]
"""(action, observation) pairs in the order of the actions; the observation is None until it arrives."""

SHORT = 200
"""Maximum length in characters of an observation that a collapse leaves unchanged."""


def messages_of_user(history: History) -> History:
    """Return the user's messages; those of a delegate are its task."""
    return [pair for pair in history if isinstance(pair[0], MessageAction) and pair[0].source == "user"]


def lasting(history: History) -> set[int]:
    """Return the ids of the actions that notes never replace: the task, and the overview of the workspace."""
    overviews = {action.id for action, observation in history if isinstance(observation, WorkspaceOverviewObservation)}
    return overviews | {action.id for action, _ in messages_of_user(history)[:1]}


def condense(history: History, event: CondensationEvent, waiting: frozenset[int]) -> History:
    """Return the history after the condensation; keep what is ``lasting``, and the actions in ``waiting``."""
    if event.how == "collapse":
        return [(a, _collapse(o)) if o and event.first <= a.id <= event.last else (a, o) for a, o in history]
    result: History = []
    # The id of the last replaced action keeps ids rising; a damaged row may hold a negative one.
    summary = MessageAction(
        content=event.summary, source="environment", id=max(event.last, 0), timestamp=event.timestamp
    )
    has_summary = False
    kept = lasting(history) | waiting
    for action, observation in history:
        is_replaced = event.first <= action.id <= event.last and action.id not in kept
        if not has_summary and (is_replaced or action.id > event.last):
            result.append((summary, None))
            has_summary = True
        if not is_replaced:
            result.append((action, observation))
    return result if has_summary else [*result, (summary, None)]


def _collapse(observation: Observation) -> Observation:
    """Return a plain Observation with the first line of the text; return a short observation unchanged.

    The overview of the workspace stays whole too: it tells the project's check.
    """
    text = observation.text
    if len(text) <= SHORT or isinstance(observation, WorkspaceOverviewObservation):
        return observation
    line = text.lstrip("\n").split("\n", 1)[0][: SHORT // 2]
    code = f", exit code {observation.exit_code}" if isinstance(observation, CmdOutputObservation) else ""
    handle = f", the whole is output {observation.blob[:12]}" if observation.blob else ""
    content = f"{line}\n[... {observation.size or len(text.encode())} bytes in all{code}; left out here{handle} ...]"
    return Observation(
        content=content,
        id=observation.id,
        cause=observation.cause,
        timestamp=observation.timestamp,
        subtask=observation.subtask,
    )
