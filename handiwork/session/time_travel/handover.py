"""Take a session's lease over from a process that only waits for the user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from handiwork.events.record import SessionWanted
from handiwork.log.eventlog import EventLog

PATIENCE = 10.0
"""Seconds in which the other process has to release the lease."""


@asynccontextmanager
async def borrowed(log: EventLog) -> AsyncGenerator[None]:
    """Hold the session's lease; a server that holds it, and runs nothing, releases it. Raises LeaseHeld."""
    if await log.holder() is not None and (await log.info()).state != "running":
        await log.append(SessionWanted(source="user"))
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while True:
                    if await log.holder() is None:
                        break
                    await asyncio.sleep(0.05)
    async with log.lease():
        yield
