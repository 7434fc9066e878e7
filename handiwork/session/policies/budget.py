"""The limits, checked before anything is spent."""

from __future__ import annotations

from typing import Literal

from handiwork.agents.state import State
from handiwork.events.base import utc_now

LimitName = Literal["iterations", "cost", "tokens", "time"]


class LimitReachedError(Exception):
    """A limit forbids another step or model call; the text names it, and ``limit`` is its field of Limits."""

    def __init__(self, limit: LimitName, text: str) -> None:
        super().__init__(text)
        self.limit: LimitName = limit


def running_time(root: State) -> float:
    """Return the seconds the session has been running, up to this moment."""
    if root.agent_state != "running" or root.last_timestamp is None:
        return root.time
    return root.time + max(0.0, (utc_now() - root.last_timestamp).total_seconds())


def time_left(root: State) -> float | None:
    """Return the seconds until the time limit; None without a limit."""
    return None if root.limits.time is None else root.limits.time - running_time(root)


def check_model_budget(root: State, in_flight: int = 0) -> None:
    """Raise LimitReachedError if a limit forbids another model call.

    The estimated cost of this call, and of each call ``in_flight`` without a price so far, is that of the last call.
    """
    limits, totals = root.limits, root.totals
    if limits.cost is not None and totals.unpriced:
        unknown = f"the cost of {totals.unpriced} earlier call{'s' if totals.unpriced > 1 else ''} is not known"
        remedy = "a higher limit does not help, only none"
        raise LimitReachedError("cost", f"{unknown}, so the limit of ${limits.cost:g} cannot be kept; {remedy}")
    if limits.cost is not None and totals.cost + totals.last_cost * (1 + in_flight) > limits.cost:
        raise LimitReachedError(
            "cost",
            f"another call would exceed the cost limit of ${limits.cost:g} "
            f"(spent: ${totals.cost:.4f}, the last call took ${totals.last_cost:.4f})",
        )
    if limits.tokens is not None and totals.usage.total >= limits.tokens:
        raise LimitReachedError(
            "tokens", f"the limit of {limits.tokens} tokens is reached (used: {totals.usage.total})"
        )
    remaining = time_left(root)
    if remaining is not None and remaining <= 0:
        raise LimitReachedError("time", f"the time limit of {limits.time:g} s is reached")


def check_step_budget(root: State) -> None:
    """Raise LimitReachedError if a limit forbids another step of the session or of a subtask."""
    limit = root.limits.iterations
    if limit is not None and root.iteration >= limit:
        raise LimitReachedError("iterations", f"the limit of {limit} step{'s' if limit > 1 else ''} is reached")
    check_model_budget(root)
