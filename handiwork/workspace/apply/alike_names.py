"""Names that the sandbox tells apart, but the user's file system may not: some ignore case, or a character's form."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from handiwork.workspace.changes import Change, Side, side_at
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.safe_open import entries, join, look


class ExactNames:
    """Finds the files below a directory by exactly their names, if several of the paths may be the same file there."""

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        self.root = root
        distinct = set(paths)
        counts = Counter(map(folded, distinct))
        self.alike = frozenset(path for path in distinct if counts[folded(path)] > 1)
        self._names: dict[str, frozenset[str]] = {}

    def look(self, path: str) -> os.stat_result | None:
        """Return the status of ``path``; None if there is no file, or it has another name."""
        status = look(self.root, path)
        return None if status and self.listed_name(path) != path.rpartition("/")[2] else status

    def side_at(self, path: str) -> Side | None:
        """Return the file or link at ``path``; None if there is none, or it has another name."""
        return side_at(self.root, path) if self.look(path) else None

    def is_taken(self, path: str) -> bool:
        """Return whether the file system finds a file by this name that has another one."""
        return path in self.alike and look(self.root, path) is not None and self.look(path) is None

    def listed_name(self, path: str) -> str:
        """Return the last name of ``path`` as its directory lists it."""
        folder, _, name = path.rpartition("/")
        if path not in self.alike:
            return name
        if folder not in self._names:
            self._names[folder] = frozenset(listed for listed, _ in entries(self.root, folder))
        names = self._names[folder]
        return name if name in names else next((other for other in names if folded(other) == folded(name)), name)


def folded(path: str) -> str:
    """Return the same text for all paths that a file system may take for this one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def in_present_folders(changes: Sequence[Change], target: Path) -> tuple[list[Change], list[str]]:
    """Return the changes with the names that the target has for their folders, and a warning for each other name.

    A folder whose old and new name are the same one there keeps the old name, because it may hold files that the
    session does not have. Each file moved from one to the other becomes a change of the file.
    """
    parents = {str(parent) for change in changes for parent in Path(change.path).parents} - {"."}
    names = ExactNames(target, parents)
    others = sorted(folder for folder in names.alike if names.is_taken(folder))
    if not others:
        return list(changes), []

    @cache
    def present(folder: str) -> str:
        return join(present(folder.rpartition("/")[0]), names.listed_name(folder)) if folder else ""

    warnings = [
        f"{quoted(folder)} keeps its name {quoted(present(folder))}: the file system here takes both for the same."
        for folder in others
    ]
    by_path: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        folder, _, name = change.path.rpartition("/")
        by_path[join(present(folder), name)].append(change)
    placed: list[Change] = []
    for path, alike in sorted(by_path.items()):
        alike.sort(key=lambda change: change.path != path)
        kept = next((change for change in alike if change.new), alike[0])
        old = next((change.old for change in alike if change.old), None)
        is_moved = kept.new and kept.old is not old
        placed.append(replace(kept, path=path, old=old, kind="modified" if is_moved else kept.kind))
        warnings += [left_out(change.path) for change in alike if change.new and change is not kept]
    return placed, warnings


def left_out(path: str) -> str:
    """Return the warning about a new file whose name is taken by another one."""
    return f"{quoted(path)} was left out: the file system here takes it for another file."
