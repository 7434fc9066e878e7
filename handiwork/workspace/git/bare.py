"""Directories that git takes for repositories though they are not named ``.git``: their files can run programs."""

from __future__ import annotations

import os
from collections import defaultdict
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
        if _in_own_case(name) in _NAMES:
            yield "/".join(parts[:depth])


def git_dirs_after(changes: Sequence[Change], target: Path) -> set[str]:
    """Return the directories that git would take for repositories once the changes are made in ``target``.

    They are in lower case: a file system may join names that differ in case alone.
    """
    names: defaultdict[str, set[str]] = defaultdict(set)
    listed: set[str] = set()
    for change in changes:
        for directory in git_dirs_of(change.path):
            entries = names[directory.lower()]
            if directory not in listed:
                listed.add(directory)
                entries.update(map(_in_own_case, _names_in(target, directory)))
            if change.new is not None:
                below = change.path.removeprefix(f"{directory}/") if directory else change.path
                entries.add(_in_own_case(below.partition("/")[0]))
    return {directory for directory, entries in names.items() if is_git_dir(entries)}


def _in_own_case(name: str) -> str:
    """Return a name in the case in which git writes it, if it is one of git's own."""
    return "HEAD" if name.lower() == "head" else name.lower()


def _names_in(target: Path, directory: str) -> set[str]:
    try:
        with open_dir(target, directory) as descriptor:
            return set(os.listdir(descriptor))
    except OSError:
        return set()
