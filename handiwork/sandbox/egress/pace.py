"""A rate limiter that allows a burst and then a number of turns a second."""

from __future__ import annotations

import asyncio


class Pace:
    """Grants ``burst`` turns at once; each used turn comes back after 1 / ``rate`` seconds."""

    def __init__(self, burst: int, rate: float) -> None:
        self._ahead, self._rate = burst / rate, rate
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for a turn."""
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now - self._ahead) + 1 / self._rate
        if self._next > now:
            await asyncio.sleep(self._next - now)
