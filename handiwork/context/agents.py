"""The micro agents and pieces of knowledge that a workspace defines: Markdown files in `.handiwork/agents`."""

from __future__ import annotations

import os

from handiwork.context.characters import visible
from handiwork.context.conventions import Convention, UnreadableError, digest, read_file, text_of, warnings
from handiwork.workspace.files.safe_open import entries_of, join, open_folder

FOLDER = ".handiwork/agents"
FILES = 64
"""Files of the folder that are read."""


def of_workspace(root: int) -> list[Convention]:
    """Return the micro agents of an open workspace, by name; their text is parsed by nobody until it is accepted."""
    try:
        descriptor = open_folder(root, FOLDER)
    except FileNotFoundError:
        return []
    except OSError:
        problem = "it is a symbolic link or no folder, and links are not followed"
        return [Convention("agent", "workspace", FOLDER, problem=problem)]
    try:
        names = sorted(name for name, _ in entries_of(descriptor) if name.endswith(".md"))
    finally:
        os.close(descriptor)
    agents = [_agent(root, join(FOLDER, name)) for name in names[:FILES]]
    if len(names) > FILES:
        problem = f"{len(names) - FILES} more files: at most {FILES} load"
        agents.append(Convention("agent", "workspace", FOLDER, problem=problem))
    return agents


def _agent(root: int, path: str) -> Convention:
    try:
        content = read_file(root, path) or b""
        text = text_of(content)
    except UnreadableError as error:
        return Convention("agent", "workspace", path, problem=str(error))
    shown = visible(text)
    return Convention("agent", "workspace", path, shown, shown, digest(content), notes=warnings(text))
