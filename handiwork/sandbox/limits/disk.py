"""Measures a session's disk use: rarely while little is written, at once when much is."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from handiwork.sandbox.limits.limits import RESERVE

_FILE_COST = 4096  # bytes counted for every file besides its content
_GROWTH = 16 << 20  # bytes a command may add even over the limit: without any, the agent could hardly clean up
_RESERVE_FILES = 50  # one in this many inodes of a file system stays free
_LOOK = 0.25  # seconds between measurements while a disk may be full
_SELDOM = 30.0  # seconds between measurements otherwise
_SHARE = 20  # a measurement that takes a second is repeated after this many at the earliest


class Disk:
    """The disk use of ``folders``, at most ``limit`` bytes; ``directory`` is on the same file system."""

    def __init__(self, folders: Sequence[Path], directory: Path, limit: int) -> None:
        self._folders = folders
        self._directory = directory
        self._limit = limit
        self.used = 0
        """Bytes used at the last measurement."""
        self._before = 0
        self._free = 0
        self._next = 0.0
        self._latest = 0.0

    async def begin(self) -> None:
        """Record the use before a command: only the command's additions count against it."""
        if not self._latest:
            await self.measure()
        self._before = self.used

    async def full(self) -> Literal["", "disk", "machine_disk"]:
        """Return which space is full, if the command added to it: the session's limit, or the machine's own disk."""
        free, scarce = self._room()
        # The limit can be exceeded only if the sandbox used the space that is missing, so the files are measured then.
        # Other programs may free space at the same time, so they are also measured at long intervals.
        suspicious = scarce or self.used + self._free - free > self._limit
        if time.monotonic() < (self._next if suspicious else self._latest):
            return ""
        await self.measure()
        self._before = min(self._before, self.used)
        if self.used - self._before <= _GROWTH:
            return ""
        if self.used > self._limit:
            return "disk"
        return "machine_disk" if scarce else ""

    async def measure(self) -> None:
        """Measure all the files."""
        start = time.monotonic()
        self._free, _ = self._room()
        folders = [str(folder) for folder in self._folders if folder.exists()]
        size, count = await asyncio.gather(_du("--block-size=1", folders), _du("--inodes", folders))
        self.used = size + count * _FILE_COST
        end = time.monotonic()
        self._next = end + max(_LOOK, _SHARE / 10 * (end - start))
        self._latest = end + max(_SELDOM, _SHARE * (end - start))

    def _room(self) -> tuple[int, bool]:
        """Return the free bytes, in the same measure as ``used``, and whether they are too few."""
        stats = os.statvfs(self._directory)
        free = stats.f_bavail * stats.f_frsize
        scarce = free < RESERVE or stats.f_favail * _RESERVE_FILES < stats.f_files
        return free + stats.f_favail * _FILE_COST, scarce


async def _du(unit: str, folders: Sequence[str]) -> int:
    """Sum up the content of the folders with du, a separate program that handles any depth and follows no link."""
    process = await asyncio.create_subprocess_exec(
        *("du", "--summarize", "--total", "--one-file-system", unit, "--", *folders),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # files that vanish meanwhile, and unreadable directories
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return int(output.splitlines()[-1].split()[0]) if output else 0
