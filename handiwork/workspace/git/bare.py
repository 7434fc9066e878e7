"""Directories that git takes for repositories though they are not named ``.git``: their files can run programs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from handiwork.workspace.changes import Change
from handiwork.workspace.files.safe_open import open_dir

_NAMES = frozenset(
    {"HEAD", "commondir", "config", "config.worktree", "gitdir", "hooks", "index", "info", "logs", "modules"}
    | {"objects", "packed-refs", "refs", "reftable", "worktrees"}
)
"""Names that git reads in a repository."""


def is_git_dir(names: Collection[str]) -> bool:
    """Return whether git takes a directory with these names in it for a repository."""
    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))


def git_dirs_of(path: str) -> Iterator[str]:
    """Yield each directory that would have ``path`` among git's own files if it were a repository; "" is the top."""
    parts = path.split("/")
    for depth, name in enumerate(parts):
        if name in _NAMES:
            yield "/".join(parts[:depth])


def git_dirs_after(changes: Sequence[Change], target: Path) -> set[str]:
    """Return the directories that git would take for repositories once the changes are made in ``target``."""
    names: dict[str, set[str]] = {}
    for change in changes:
        for directory in git_dirs_of(change.path):
            if directory not in names:
                names[directory] = _names_in(target, directory)
            if change.new is not None:
                below = change.path.removeprefix(f"{directory}/") if directory else change.path
                names[directory].add(below.partition("/")[0])
    return {directory for directory, entries in names.items() if is_git_dir(entries)}


def _names_in(target: Path, directory: str) -> set[str]:
    try:
        with open_dir(target, directory) as descriptor:
            return set(os.listdir(descriptor))
    except OSError:
        return set()
