"""Copies of a session's files for children that run in parallel."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.users import sandbox_ids
from handiwork.session.storage.layout import layers
from handiwork.workspace.changes import changes_of_overlay, changes_of_tree
from handiwork.workspace.copy import Workspace
from handiwork.workspace.layers import upper_dir
from handiwork.workspace.manifest import private_dirs
from handiwork.workspace.patch import unified_diff


def work_dir(session_dir: Path) -> Path:
    """Return the agent's working directory on a copy without a sandbox."""
    return session_dir / "work" / "workspace"


class WorkspaceBranches:
    """Branches of the session whose files are in ``session_dir``; ``make`` gives the sandbox on a folder like it."""

    def __init__(self, session_dir: Path, isolated: bool, make: Callable[[Path], Sandbox]) -> None:
        self._session_dir, self._isolated, self._make = session_dir, isolated, make

    async def open(self, parent: int, child: int) -> Sandbox:
        """Return an unstarted sandbox on the child's copy of the parent's files; create the copy if it is missing.

        Raises SandboxError.
        """
        folder = self._folder(child)
        if not folder.exists():
            await asyncio.to_thread(self._copy, self._folder(parent), folder)
        return self._make(folder)

    async def diff(self, child: int) -> str:
        """Return the copy's changes since the session's start as a unified diff."""
        return await asyncio.to_thread(self._diff, self._folder(child))

    async def keep(self, children: Collection[int]) -> None:
        """Remove all other copies."""
        kept = {str(child) for child in children}
        for folder in (self._session_dir / "children").glob("*"):
            if folder.name not in kept:
                await asyncio.to_thread(_remove, folder)

    def _folder(self, branch: int) -> Path:
        return self._session_dir / "children" / str(branch) if branch else self._session_dir

    def _copy(self, parent: Path, folder: Path) -> None:
        """Copy atomically: an existing folder is complete."""
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        if unfinished.exists():
            _remove(unfinished)
        private_dirs(unfinished)
        if self._isolated:
            sandbox_ids(parent)
            layers = [upper_dir(parent), *(parent / "overlay/mounts").glob("*/upper")]
        else:
            layers = [work_dir(parent)]
        for path in [parent / "uid", *(layer for layer in layers if layer.exists())]:
            if path.exists():
                # With the owners of the directories above: the sandbox's uid must reach its layers.
                copy_tree(path.relative_to(parent), unfinished, parent)
        unfinished.rename(folder)

    def _diff(self, folder: Path) -> str:
        workspace = Workspace.load(self._session_dir)
        if self._isolated:
            return unified_diff(
                changes_of_overlay(workspace, *layers(self._session_dir, workspace)[:-1], upper_dir(folder))
            )
        return unified_diff(changes_of_tree(workspace, work_dir(folder)))


def copy_tree(path: Path, target: Path, root: Path) -> None:
    """Copy ``root/path`` to ``target/path`` with owners, times and links. Raises SandboxError."""
    _run("cp", "-a", "--reflink=auto", "--parents", str(path), str(target), cwd=root)


def _remove(folder: Path) -> None:
    # What an agent wrote may forbid its own removal.
    _run("chmod", "-R", "u+rwX", str(folder))
    shutil.rmtree(folder)


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise SandboxError(f"a copy of the workspace cannot be made: {done.stderr.strip()}")
