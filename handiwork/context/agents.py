"""The micro agents and pieces of knowledge that a repository defines: Markdown files in `.handiwork/agents`.

The workspace has such a folder, and so may each folder around it up to the repository's root; the nearest come first.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from handiwork.context.characters import visible
from handiwork.context.conventions import (
    Convention,
    UnreadableError,
    digest,
    folders_around,
    read_file,
    text_of,
    warnings,
)
from handiwork.workspace.files.safe_open import entries_beneath, join

FOLDER = ".handiwork/agents"
FILES = 64
"""Files of one folder that are read."""


def of_repository(root: int, workspace: Path) -> list[Convention]:
    """Return the micro agents of ``workspace``, open as ``root``, and of the folders around it, whose paths have `..`.

    ``root`` may be a copy of the workspace. No text is parsed before the user accepts it.
    """
    found = _in_folder(root, "")
    for prefix, descriptor in folders_around(workspace):
        found += _in_folder(descriptor, prefix)
    return found


def below_folder(root: int) -> list[str]:
    """Return the paths of Markdown files one folder below FOLDER, which load nowhere."""
    folders = (join(FOLDER, name) for name, status in _entries(root, FOLDER) if stat.S_ISDIR(status.st_mode))
    paths = (join(folder, name) for folder in folders for name, _ in _entries(root, folder) if name.endswith(".md"))
    return sorted(paths)[:FILES]


def _entries(root: int, folder: str) -> list[tuple[str, os.stat_result]]:
    """Return the entries of a folder; none if there is no such folder, or a link."""
    try:
        return entries_beneath(root, folder)
    except OSError:
        return []


def _in_folder(root: int, prefix: str) -> list[Convention]:
    """Return the micro agents in one open folder; ``prefix`` comes before their paths."""
    try:
        entries = entries_beneath(root, FOLDER)
    except FileNotFoundError:
        return []
    except OSError:
        problem = "it is a symbolic link or no folder, and links are not followed"
        return [Convention("agent", "workspace", prefix + FOLDER, problem=problem)]
    names = sorted(name for name, _ in entries if name.endswith(".md"))
    agents = [_agent(root, join(FOLDER, name), prefix) for name in names[:FILES]]
    if len(names) > FILES:
        problem = f"{len(names) - FILES} more files: at most {FILES} of a folder load"
        agents.append(Convention("agent", "workspace", prefix + FOLDER, problem=problem))
    return agents


def _agent(root: int, path: str, prefix: str) -> Convention:
    try:
        content = read_file(root, path) or b""
        text = text_of(content)
    except UnreadableError as error:
        return Convention("agent", "workspace", prefix + path, problem=str(error))
    shown = visible(text)
    return Convention("agent", "workspace", prefix + path, shown, shown, digest(content), notes=warnings(text))
