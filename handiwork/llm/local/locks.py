"""Locks between processes, which the kernel releases when their holder dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from handiwork.paths import lock


class FileLock:
    """A lock on a file, shared or exclusive, held until ``release`` or the end of the process."""

    def __init__(self, path: Path, exclusive: bool = True) -> None:
        self.path = path
        self._mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        self._fd: int | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock; with ``wait`` False return False if another process holds it."""
        try:
            self._fd = lock(self.path, self._mode | (0 if wait else fcntl.LOCK_NB), os.O_RDWR | os.O_CREAT)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock; no effect if it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_held(path: Path) -> bool:
    """Return whether any process holds the exclusive lock on ``path``."""
    if not path.exists():
        return False
    probe = FileLock(path, exclusive=False)
    free = probe.acquire(wait=False)
    probe.release()
    return not free


@asynccontextmanager
async def locked(path: Path, *, exclusive: bool = True) -> AsyncGenerator[None]:
    """Hold the lock on ``path``; waiting for it can be cancelled."""
    held = FileLock(path, exclusive)
    # A lock's release is not signalled, and waiting for it in a thread could not be cancelled.
    while not held.acquire(wait=False):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    try:
        yield
    finally:
        held.release()
