"""Runs asynchronous work together, or to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def run_until_one_ends(*work: Coroutine[Any, Any, None]) -> None:
    """Run all until the first ends, whose error is raised, and cancel the others."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_to_end(work: Awaitable[T]) -> T:
    """Run work that must not stop half-way; a cancelled caller waits for its end, however often it is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        raise
