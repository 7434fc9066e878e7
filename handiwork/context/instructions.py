"""AGENTS.md and CLAUDE.md: those of the workspace, of its folders, of the folders around it, and the user's own.

A line that consists of ``@path`` in one of the workspace's imports that file, if it is in the workspace; the path
starts at the folder of the importing file. One of a folder around the workspace imports files below that folder.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from handiwork.context.characters import one_line
from handiwork.context.conventions import (
    LARGEST,
    Convention,
    UnreadableError,
    digest,
    folders_around,
    instructions,
    read_file,
)
from handiwork.errors import WorkspaceError
from handiwork.workspace.files.safe_open import entries_beneath, join, parts_of

NAMES = ("AGENTS.md", "CLAUDE.md")
PLACES = (*NAMES, ".claude/CLAUDE.md")
"""The files of a folder, relative to it."""

DEPTH, IMPORTS = 3, 20
"""How deep imports nest, and how many files one folder's conventions import."""

FOLDERS = 20_000
"""Folders in which the listing of a whole workspace looks for nested files."""

SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", "target", "site-packages"})
"""Folders of other projects and of tools, whose files are not conventions of this project."""

_IMPORT = re.compile(r"^@(\S+)$")
_FENCE = re.compile(r"^\s*(```|~~~)")


def in_folder(root: int, folder: str = "", prefix: str = "") -> list[Convention]:
    """Return the conventions of one folder of an open workspace, "" for its top, each file before its imports.

    ``prefix`` comes before the paths of an open folder around the workspace.
    """
    found: dict[str, Convention] = {}
    for place in PLACES:
        _add(root, join(folder, place), prefix, 0, found)
    texts = {one.sha256: path for path, one in reversed(found.items()) if not one.problem}
    for path, convention in found.items():
        other = _link_target(root, path) if convention.problem else texts[convention.sha256]
        if other in texts.values() and other != path:
            problem = f"its text is that of {prefix}{other}"
            found[path] = replace(convention, text="", problem=problem, redundant=True)
    return list(found.values())


def around(workspace: Path, found: Sequence[Convention]) -> list[Convention]:
    """Return the conventions of the folders around a workspace up to its repository's root, with paths like ``../``.

    A text that is among those ``found`` in the workspace, or nearer to it, is redundant.
    """
    texts = {one.sha256: one.path for one in found if not one.problem}
    above: list[Convention] = []
    for prefix, descriptor in folders_around(workspace):
        for one in in_folder(descriptor, prefix=prefix):
            other = one.path if one.problem else texts.setdefault(one.sha256, one.path)
            is_new = other == one.path
            above.append(
                one if is_new else replace(one, text="", problem=f"its text is that of {other}", redundant=True)
            )
    return above


def folders_below(root: int) -> Iterator[tuple[str, set[str]]]:
    """Yield the folders below the top of an open workspace, each with its entries' names; reads at most FOLDERS."""
    pending, number = [""], 0
    while pending and number < FOLDERS:
        folder, number = pending.pop(), number + 1
        try:
            entries = entries_beneath(root, folder)
        except OSError:
            continue  # unreadable folders are left out of the agent's copy too
        if folder:
            yield folder, {name for name, _ in entries}
        folders = [name for name, status in sorted(entries, reverse=True) if stat.S_ISDIR(status.st_mode)]
        pending += [join(folder, name) for name in folders if name not in SKIPPED]


def of_user(folder: Path) -> list[Convention]:
    """Return the user's own instructions in their settings folder; links are followed, since the user made them."""
    found: list[Convention] = []
    for name in NAMES:
        path = folder / name
        try:
            if not path.is_file():
                continue
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}"
            found.append(Convention("instructions", "user", str(path), problem=problem))
            continue
        if len(content) > LARGEST:
            problem = f"it has more than {LARGEST // 1024} KiB"
            found.append(Convention("instructions", "user", str(path), problem=problem))
        elif not any(digest(content) == one.sha256 for one in found):
            found.append(instructions("user", str(path), content))
    return found


def _link_target(root: int, path: str) -> str:
    """Return the path that a symbolic link names, relative to the workspace; "" if there is no such link."""
    try:
        target = os.readlink(path, dir_fd=root)
    except OSError:
        return ""
    return _inside(path.rpartition("/")[0], target) or ""


def _add(root: int, path: str, prefix: str, depth: int, found: dict[str, Convention]) -> None:
    if path in found:
        return
    try:
        content = read_file(root, path)
    except UnreadableError as error:
        found[path] = Convention("instructions", "workspace", prefix + path, problem=str(error))
        return
    if content is None:
        if depth:
            problem = "it is imported, and does not exist"
            found[path] = Convention("instructions", "workspace", prefix + path, problem=problem)
        return
    found[path] = convention = instructions("workspace", prefix + path, content)
    refused: list[str] = []
    for target in _imports(convention.text):
        imported = _inside(path.rpartition("/")[0], target)
        if imported is None:
            place = "its folder" if prefix else "the workspace"
            refused.append(f"its import @{one_line(target)} leads out of {place} and is left out")
        elif depth == DEPTH or len(found) > IMPORTS:
            refused.append(f"its import @{one_line(target)} is one too many and is left out")
        else:
            _add(root, imported, prefix, depth + 1, found)
    if refused:
        found[path] = replace(convention, notes=(*convention.notes, *refused))


def _imports(text: str) -> Iterator[str]:
    """Yield the paths of the import lines outside of code blocks."""
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := _IMPORT.match(line)) is not None:
            yield match[1]


def _inside(folder: str, target: str) -> str | None:
    """Return the path of an import relative to the workspace; None if it leads out."""
    path = posixpath.normpath(posixpath.join(folder, target))
    try:
        parts_of(path)
    except WorkspaceError:
        return None
    return None if target.startswith(("/", "~")) else path
