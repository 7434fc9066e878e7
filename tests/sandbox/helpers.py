"""Sandboxes for tests, and what is asked of them again and again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.create import create
from handiwork.workspace.layers import SandboxPaths

PYTHON = "/opt/handiwork/bin/python3 -I"


@dataclass
class Blobs:
    """Keeps what sandboxes save, by SHA-256."""

    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])

    async def save(self, data: AsyncIterator[bytes]) -> str:
        content = b"".join([piece async for piece in data])
        digest = hashlib.sha256(content).hexdigest()
        self.kept[digest] = content
        return digest


@dataclass
class Box:
    """Starts sandboxes, those of a Docker image if one is named, and closes them at the end of the test."""

    session_dir: Path
    project: Path
    blobs: Blobs
    stack: AsyncExitStack
    image: str | None = None

    def make(self, **options: Any) -> Sandbox:
        """A sandbox on a copy of the project, not started."""
        base = self.session_dir / "base"
        if not base.exists():
            shutil.copytree(self.project, base, symlinks=True)
        return self._create(base, **options)

    def in_place(self) -> Sandbox:
        """A sandbox on the project itself, not started."""
        return self._create(None)

    def _create(self, base: Path | None, **options: Any) -> Sandbox:
        kind = "bubblewrap" if self.image is None else "docker"
        places = SandboxPaths(self.session_dir, self.project, base, options.pop("mounts", ()))
        sandbox = create(kind, places, self.blobs.save, image=self.image, **options)
        self.stack.push_async_callback(sandbox.close)
        return sandbox


@asynccontextmanager
async def new_box(folder: Path) -> AsyncGenerator[Box]:
    """A session, and the user's own project: a small git repository."""
    session_dir, project = folder / "sessions/one", folder / "me/project"
    session_dir.mkdir(parents=True, mode=0o700)
    (project / "src").mkdir(parents=True)
    (project / "README").write_text("read me\n")
    (project / "src/main.py").write_text("print('hello')\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    async with AsyncExitStack() as stack:
        yield Box(session_dir, project, Blobs(), stack)


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


def git(folder: Path, *arguments: str) -> str:
    """Run git as the user would and return what it prints."""
    identity = {f"GIT_{who}_{what}": "me@here" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **identity}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
