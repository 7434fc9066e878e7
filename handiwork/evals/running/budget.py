"""Divides a run's budget among the rollouts that run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from handiwork.agents.state import State
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.results import Outcome

MARGIN = 2.0
"""Each rollout's share, as a multiple of the cost of the dearest rollout so far."""


class Spending(Protocol):
    """The costs of rollouts."""

    @property
    def spent(self) -> float:
        """USD so far."""
        ...

    @property
    def dearest(self) -> float | None:
        """USD of the dearest rollout, None if no cost is known."""
        ...


class SharedBudget:
    """A run's budget of ``cap`` USD, None for no cap; ``results`` record the money spent.

    The cost of a rollout is known only after one has ended: until then one runs alone. After that another starts beside
    the running ones only if the remaining money, less their shares, pays for the dearest so far. When none runs, one
    starts with what is left.
    """

    def __init__(self, cap: float | None, results: Spending) -> None:
        self._cap, self._results = cap, results
        self._shares: list[float] = []
        self._changed = asyncio.Event()

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self._cap is not None and self._results.spent >= self._cap

    async def ready(self, tried: float = 0.0) -> bool:
        """Return True if a rollout may start; otherwise wait until another has ended, and return False.

        A share of ``tried`` USD was too small for the rollout: beside others it starts only with a larger one.
        """
        if self._cap is None or not self._shares:
            return True
        dearest = self._results.dearest
        if dearest is not None and self._remaining >= dearest and self._share > tried:
            return True
        self._changed.clear()
        await self._changed.wait()
        return False

    @contextmanager
    def reserved(self) -> Generator[float | None]:
        """Yield the share of a rollout in USD, None for no cap, and reserve it until the rollout has ended."""
        if self._cap is None:
            yield None
            return
        share = self._share
        # Free rollouts, as on a local model, need not wait for each other.
        reservation = 0.0 if self._results.dearest == 0 else share
        self._shares.append(reservation)
        try:
            yield share
        finally:
            self._shares.remove(reservation)
            self._changed.set()

    @property
    def _share(self) -> float:
        """The share of a rollout that starts now."""
        dearest, remaining = self._results.dearest, self._remaining
        return min(remaining, MARGIN * dearest) if dearest else remaining

    @property
    def _remaining(self) -> float:
        return (self._cap or 0.0) - self._results.spent - sum(self._shares)


def is_cut(share: float, conditions: Conditions, state: State, outcome: Outcome) -> bool:
    """Return whether a rollout ended because its share of the run's budget is spent: not the agent, the run ends it.

    An agent whose money is spent may end its task by ``Agent.at_limit``. No step begins when another call is too dear,
    so any other end comes from the last completion.
    """
    is_late = state.limits.time is not None and state.time >= state.limits.time
    ended_by_limit = bool(state.history) and state.history[-1][0].completion is None and not is_late
    if outcome != "limit" and not (outcome == "submitted" and ended_by_limit):
        return False
    own, totals = conditions.limits, state.totals
    if (own.cost is not None and own.cost <= share) or state.iteration == own.iterations:
        return False
    return totals.unpriced > 0 or totals.cost + totals.last_cost > share
