"""The user's interrupt: a flag that a running task can be raced against."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupt(asyncio.Event):
    """A flag that is set when the user interrupts the session."""

    async def race(self, task: asyncio.Task[Any], seconds: float | None) -> bool:
        """Wait for the task, the interrupt or ``seconds``; True if the task is done. Otherwise the task continues."""
        stop = asyncio.create_task(self.wait())
        timeout = None if seconds is None else max(0.0, seconds)
        try:
            await asyncio.wait({task, stop}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
            raise
        finally:
            stop.cancel()
        return task.done()

    async def unless_set(self, work: Coroutine[None, None, T], seconds: float | None) -> T | None:
        """Return the result of the work; cancel the work and return None on the interrupt or after ``seconds``."""
        task = asyncio.create_task(work)
        if await self.race(task, seconds):
            return task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return None
