"""Divides what a run may spend among the rollouts that run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from handiwork.evals.running.results import Results

MARGIN = 2.0
"""How many times the cost of the dearest rollout so far each gets."""


class SharedBudget:
    """The USD that a run may spend, ``cap``, None for no cap; ``results`` say what it has spent.

    What a rollout costs is known when one has ended: until then one runs alone. From then on another begins only if
    what is left, less what the others may still spend, pays for the dearest so far.
    """

    def __init__(self, cap: float | None, results: Results) -> None:
        self._cap, self._results = cap, results
        self._shares: list[float] = []
        self._changed = asyncio.Event()

    @property
    def spent_up(self) -> bool:
        """Whether nothing is left."""
        return self._cap is not None and self._results.spent >= self._cap

    async def ready(self) -> bool:
        """Return True if a rollout may begin; else wait until another has ended, and return False."""
        if self._cap is None or not self._shares:
            return True
        dearest = self._results.dearest
        if dearest is not None and self._left >= dearest:
            return True
        self._changed.clear()
        await self._changed.wait()
        return False

    @contextmanager
    def reserved(self) -> Generator[float | None]:
        """Yield what a rollout may spend, None for no cap, and keep it from others until it has ended."""
        if self._cap is None:
            yield None
            return
        dearest, left = self._results.dearest, self._left
        share = min(left, MARGIN * dearest) if dearest else left
        # Where rollouts cost nothing, as on a local model, they need not wait for each other.
        kept = 0.0 if dearest == 0 else share
        self._shares.append(kept)
        try:
            yield share
        finally:
            self._shares.remove(kept)
            self._changed.set()

    @property
    def _left(self) -> float:
        return (self._cap or 0.0) - self._results.spent - sum(self._shares)
