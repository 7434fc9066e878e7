"""The outcome of a rollout, from its state, which is folded from its log."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.state import State
from handiwork.evals.running.results import Outcome
from handiwork.events.base import Event
from handiwork.events.observation import ErrorObservation

MALFORMED = 3
"""The number of malformed replies at the end that makes the format the cause of the failure."""


def outcome_of(state: State, events: Sequence[Event]) -> tuple[Outcome, str]:
    """Return the outcome of the session with these events, and its explanation."""
    why = state.change.content if state.change else ""
    if any(isinstance(event, ErrorObservation) and event.error_id == "sandbox_lost" for event in events):
        # The session continued, but on a machine that had lost its programs: its result measures nothing.
        return "sandbox", "the sandbox was lost"
    match state.agent_state:
        case "finished" | "awaiting_user_input":
            return "submitted", ""
        case "rejected":
            return "gave up", str(state.outputs.get("reason", ""))
        case "paused":
            return _paused(state), why
        case _:
            return _failed(state), why


def _paused(state: State) -> Outcome:
    reason = state.change.reason if state.change else None
    late = [observation for _, observation in state.history[-MALFORMED:]]
    if len(late) == MALFORMED and all(isinstance(o, ErrorObservation) and o.error_id == "malformed" for o in late):
        return "format"
    if reason == "stuck":
        return "repeat"
    if state.limits.time is not None and state.time >= state.limits.time:
        return "timeout"
    return "limit" if reason in ("limit", "context") else "platform"


def _failed(state: State) -> Outcome:
    match state.change.reason if state.change else None:
        case "agent":
            return "agent error"
        case "model":
            return "model"
        case "sandbox":
            return "sandbox"
        case _:
            return "platform"
