"""Sandboxes for tests, and what is asked of them again and again."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bubblewrap import BubblewrapSandbox


@dataclass
class Blobs:
    """Keeps what sandboxes save, by SHA-256."""

    kept: dict[str, bytes] = field(default_factory=dict)

    async def save(self, data: AsyncIterator[bytes]) -> str:
        content = b"".join([piece async for piece in data])
        digest = hashlib.sha256(content).hexdigest()
        self.kept[digest] = content
        return digest


@dataclass
class Box:
    """Starts sandboxes and closes them at the end of the test."""

    session_dir: Path
    project: Path
    blobs: Blobs
    stack: AsyncExitStack

    def make(self, **options: Any) -> BubblewrapSandbox:
        """A sandbox on a copy of the project, not started."""
        base = self.session_dir / "base"
        if not base.exists():
            shutil.copytree(self.project, base, symlinks=True)
        return self._keep(BubblewrapSandbox(self.session_dir, self.project, self.blobs.save, base, **options))

    def in_place(self) -> BubblewrapSandbox:
        """A sandbox on the project itself, not started."""
        return self._keep(BubblewrapSandbox(self.session_dir, self.project, self.blobs.save))

    def _keep(self, sandbox: BubblewrapSandbox) -> BubblewrapSandbox:
        self.stack.push_async_callback(sandbox.close)
        return sandbox


async def run(sandbox: Sandbox, command: str) -> CmdOutputObservation:
    """Run a command that ends by itself and return what came of it."""
    observation = await sandbox.execute(CmdRunAction(command=command, timeout=60))
    assert isinstance(observation, CmdOutputObservation), observation
    return observation


async def output(sandbox: Sandbox, command: str) -> str:
    """Return what a command prints, without the last newline; it must succeed."""
    observation = await run(sandbox, command)
    assert observation.exit_code == 0, observation
    return observation.content.rstrip("\r\n").replace("\r\n", "\n")
