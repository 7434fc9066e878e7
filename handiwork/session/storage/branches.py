"""Copies of a session's files for children that run in parallel."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.paths import private_dirs
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.users import sandbox_ids
from handiwork.tasks import run_to_end
from handiwork.workspace.changes import changes_since
from handiwork.workspace.patch import unified_diff
from handiwork.workspace.session_files import SessionFiles
from handiwork.workspace.snapshots.object_store import remove_tree


class WorkspaceBranches:
    """Branches of a session's ``files``; ``make`` returns the sandbox on the files of a child."""

    def __init__(self, files: SessionFiles, make: Callable[[SessionFiles], Sandbox]) -> None:
        self._files, self._make = files, make

    async def open(self, parent: int, child: int) -> Sandbox:
        """Return an unstarted sandbox on the child's copy of the parent's files; create the copy if it is missing.

        Raises SandboxError.
        """
        files = self._files.of_child(child)
        if not files.folder.exists():
            await run_to_end(asyncio.to_thread(_copy, self._files.of_child(parent), files.folder))
        return self._make(files)

    async def diff(self, parent: int, child: int) -> str:
        """Return the copy's changes to the parent's files as a unified diff."""
        return await asyncio.to_thread(self._diff, self._files.of_child(parent), self._files.of_child(child))

    @staticmethod
    def _diff(parent: SessionFiles, child: SessionFiles) -> str:
        after = child.changes(ignored=True)
        ignored = {change.path for change in after if change.ignored}  # by rules of the child that the parent lacks
        before = [change for change in parent.changes() if change.path not in ignored]
        return unified_diff(changes_since(before, [change for change in after if not change.ignored]))

    async def keep(self, children: Collection[int]) -> None:
        """Remove all other copies."""
        kept = {str(child) for child in children}
        for folder in (self._files.folder / "children").glob("*"):
            if folder.name not in kept:
                await asyncio.to_thread(remove_tree, folder)


def _copy(parent: SessionFiles, folder: Path) -> None:
    """Copy atomically: an existing folder is complete."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    if unfinished.exists():
        remove_tree(unfinished)
    private_dirs(unfinished)
    sandbox_ids(parent.folder)
    for path in [parent.folder / "uid", *parent.written()]:
        if path.exists():
            # With the owners of the directories above: the sandbox's uid must reach its layers.
            copy_tree(path.relative_to(parent.folder), unfinished, parent.folder)
    unfinished.rename(folder)


def copy_tree(path: Path, target: Path, root: Path) -> None:
    """Copy ``root/path`` to ``target/path`` with owners, times and links. Raises SandboxError."""
    command = ["cp", "-a", "--reflink=auto", "--parents", str(path), str(target)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise SandboxError(f"a copy of the workspace cannot be made: {done.stderr.strip()}")
