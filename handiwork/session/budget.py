"""The limits, checked before anything is spent."""

from __future__ import annotations

from handiwork.agents.state import State
from handiwork.events.base import utc_now


def running_time(state: State) -> float:
    """Return the seconds the session has been running, up to this moment."""
    if state.agent_state != "running" or state.last_timestamp is None:
        return state.time
    return state.time + max(0.0, (utc_now() - state.last_timestamp).total_seconds())


def time_left(state: State) -> float | None:
    """Return the seconds until the time limit, None without one."""
    return None if state.limits.time is None else state.limits.time - running_time(state)


def model_budget_reached(state: State) -> str | None:
    """Say which limit forbids another model call, None where it is allowed."""
    limits = state.limits
    if limits.cost is not None and state.unpriced:
        return f"the cost of {state.model} is not known, so the limit of ${limits.cost:g} cannot be kept"
    if limits.cost is not None and state.cost >= limits.cost:
        return f"the cost limit of ${limits.cost:g} is reached (spent: ${state.cost:.4f})"
    if limits.tokens is not None and state.usage.total >= limits.tokens:
        return f"the limit of {limits.tokens} tokens is reached (used: {state.usage.total})"
    left = time_left(state)
    if left is not None and left <= 0:
        return f"the time limit of {limits.time:g} s is reached"
    return None


def step_budget_reached(state: State) -> str | None:
    """Say which limit forbids another step, None where it is allowed."""
    limit = state.limits.iterations
    if limit is not None and state.iteration >= limit:
        return f"the limit of {limit} iterations is reached"
    return model_budget_reached(state)
