"""Measures what a session takes of a disk, seldom where nothing happens and at once where much does."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from handiwork.sandbox.limits.limits import RESERVE

_FILE_COST = 4096  # bytes counted for every file besides its content
_GROWTH = 16 << 20  # bytes a command may add where too much is taken already: without any, little can be mended
_RESERVE_FILES = 50  # of so many that a file system can have, one is left
_LOOK = 0.25  # seconds between measures while there is cause for them
_SELDOM = 30.0  # seconds between measures while there is none
_SHARE = 20  # a measure that takes a second is not repeated for so many


class Disk:
    """What ``folders`` take, of which ``limit`` is the most in bytes; ``place`` is on the file system they are on."""

    def __init__(self, folders: Sequence[Path], place: Path, limit: int) -> None:
        self._folders = folders
        self._place = place
        self._limit = limit
        self.used = 0
        """Bytes taken when last measured."""
        self._before = 0
        self._free = 0
        self._next = 0.0
        self._latest = 0.0

    async def begin(self) -> None:
        """Note the use before a command: only what the command adds counts against it."""
        if not self._latest:
            await self.measure()
        self._before = self.used

    async def full(self) -> Literal["", "disk", "machine_disk"]:
        """Tell what is full, if the command added to it: what the session may take, or the machine's own disk."""
        free, scarce = self._room()
        # Only if the room that is gone was taken by the sandbox there may be too much, so only then the files
        # themselves are looked at. What others gave back meanwhile is why they are, at times, anyway.
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
        """Look at all the files."""
        began = time.monotonic()
        self._free, _ = self._room()
        folders = [str(folder) for folder in self._folders if folder.exists()]
        taken, files = await asyncio.gather(_du("--block-size=1", folders), _du("--inodes", folders))
        self.used = taken + files * _FILE_COST
        ended = time.monotonic()
        self._next = ended + max(_LOOK, _SHARE / 10 * (ended - began))
        self._latest = ended + max(_SELDOM, _SHARE * (ended - began))

    def _room(self) -> tuple[int, bool]:
        """How many bytes are free, in the measure of ``used``, and whether that is too little."""
        found = os.statvfs(self._place)
        free = found.f_bavail * found.f_frsize
        scarce = free < RESERVE or found.f_favail * _RESERVE_FILES < found.f_files
        return free + found.f_favail * _FILE_COST, scarce


async def _du(unit: str, folders: Sequence[str]) -> int:
    """Sum up what is below the folders; a program of its own that goes into the deepest and follows no link."""
    process = await asyncio.create_subprocess_exec(
        *("du", "--summarize", "--total", "--one-file-system", unit, "--", *folders),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # files that go while it looks, and what may not be entered
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return int(output.splitlines()[-1].split()[0]) if output else 0
