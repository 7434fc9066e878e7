"""Completions of the input line: slash commands with their arguments, and paths after ``@``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

FILES = 5000
"""The number of files and folders among which a name is looked for."""
SHOWN = 50
"""The number of completions offered at once."""
_IGNORED = frozenset({"node_modules", "__pycache__", "target", "build", "dist", "venv"})
_MENTION = re.compile(r"(?<!\S)@(\S+)")

Arguments = Callable[[str], Iterable[str]]
"""Returns the values that an argument of the command may have."""


class InputCompleter(Completer):
    """Completes ``commands``, names with a description each, their ``arguments``, and the paths of ``folder``."""

    def __init__(self, folder: Path, commands: Mapping[str, str], arguments: Arguments) -> None:
        self._folder, self._commands, self._arguments = folder, commands, arguments

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions of the text before the cursor."""
        text = document.text_before_cursor
        command, space, rest = text.partition(" ")
        if text.startswith("/") and not space:
            for name, about in self._commands.items():
                if name.startswith(text):
                    yield Completion(name, -len(text), display_meta=about)
        elif text.startswith("/") and command in self._commands:
            for value in self._arguments(command):
                if value.startswith(rest):
                    yield Completion(value, -len(rest))
        elif (mention := re.search(r"(?<!\S)@(\S*)$", text)) is not None:
            for path in paths(self._folder, mention[1]):
                yield Completion(f"@{path}", -len(mention[0]), display=path)


def paths(folder: Path, start: str) -> list[str]:
    """Return the paths in ``folder`` that begin with ``start``, then such files below it; folders end with "/"."""
    parent, _, name = start.rpartition("/")
    prefix = f"{parent}/" if parent or start.startswith("/") else ""
    found = [
        f"{prefix}{entry.name}{'/' * entry.is_dir()}"
        for entry in _entries(folder / prefix)
        if entry.name.lower().startswith(name.lower()) and (name.startswith(".") or not entry.name.startswith("."))
    ]
    if name and not prefix:
        found += (path for path in _files(folder) if path.rpartition("/")[2].lower().startswith(name.lower()))
    return list(dict.fromkeys(found))[:SHOWN]


def without_marks(text: str, folder: Path) -> str:
    """Return a message without the ``@`` before paths that exist."""

    def path_of(mention: re.Match[str]) -> str:
        path = mention[1].rstrip(",.;:!?)")
        return mention[1] if os.path.lexists(folder / path) else mention[0]

    return _MENTION.sub(path_of, text)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _files(folder: Path) -> Iterator[str]:
    """Yield the files below the folder, except hidden ones and those that tools make."""
    waiting, seen = [""], 0
    while waiting and seen < FILES:
        prefix = waiting.pop()
        for entry in _entries(folder / prefix):
            seen += 1
            if entry.name.startswith(".") or entry.name in _IGNORED:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{prefix}{entry.name}/")
            else:
                yield f"{prefix}{entry.name}"
