"""Taking a session over for a moment from a process that only waits for the user with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from handiwork.events.record import SessionWanted
from handiwork.log.eventlog import EventLog

PATIENCE = 10.0
"""Seconds that the other process has to let the session go."""


@asynccontextmanager
async def borrowed(log: EventLog) -> AsyncGenerator[None]:
    """Hold the session's lease; a server that has it, and runs nothing, lets it go. Raises LeaseHeld."""
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
