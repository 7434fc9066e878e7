"""The memory of codebases: solutions of tasks with a folder's code, and its docstrings, in the user's data folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import Field, ValidationError

from handiwork.events.base import Model
from handiwork.events.code_memory import CodeEpisode
from handiwork.paths import locked, private_dirs, write_private

EPISODES, RECALLED, DOCSTRINGS, LARGEST = 100, 3, 1_000, 16_000_000
"""Tasks that are remembered of a codebase, those that are recalled for a new one, docstrings, and bytes of a file."""

_WORD = re.compile(r"[^\W\d_]{3,}")


class _Remembered(Model):
    """A file: the folder of the codebase, its tasks from the oldest on, and docstrings by the ids of their blocks."""

    root: str
    episodes: tuple[CodeEpisode, ...] = ()
    docstrings: dict[str, str] = Field(default_factory=dict)


class CodeMemory:
    """The memory of the codebase in the folder ``root``, in ``data``. ``redact`` takes secrets out of texts."""

    def __init__(self, data: Path, root: str, redact: Callable[[str], str] = str) -> None:
        self._folder, self._root, self._redact = data / "codebases", root, redact
        self._file = self._folder / f"{hashlib.sha256(root.encode(errors='surrogateescape')).hexdigest()[:32]}.json"

    def episodes(self) -> tuple[CodeEpisode, ...]:
        """Return all tasks that are remembered, the newest last. Raises OSError."""
        return self._load().episodes

    def docstrings(self) -> dict[str, str]:
        """Return all docstrings that are remembered, the newest last. Raises OSError."""
        return self._load().docstrings

    def recall(self, task: str) -> tuple[CodeEpisode, ...]:
        """Return the episodes whose tasks share the most words with the task, the best first. Raises OSError."""
        words = _words(task)
        newest_first = self.episodes()[::-1]
        return tuple(sorted(newest_first, key=lambda one: -len(words & _words(one.task)))[:RECALLED])

    def remember(self, episode: CodeEpisode) -> None:
        """Add an episode, in the place of an older one with the same task. Raises OSError."""
        episode = CodeEpisode.model_validate_json(self._redact(episode.model_dump_json()))

        def add(memory: _Remembered) -> _Remembered:
            others = [one for one in memory.episodes if one.task != episode.task]
            return memory.model_copy(update={"episodes": (*others, episode)[-EPISODES:]})

        self._change(add)

    def recall_docstrings(self, blocks: Iterable[str]) -> dict[str, str]:
        """Return the docstrings that are remembered for these blocks. Raises OSError."""
        docstrings = self.docstrings()
        return {block: docstrings[block] for block in blocks if block in docstrings}

    def remember_docstrings(self, docstrings: Mapping[str, str]) -> None:
        """Add docstrings by the ids of their blocks. Raises OSError."""
        new = {block: self._redact(text) for block, text in docstrings.items()}

        def add(memory: _Remembered) -> _Remembered:
            newest = list({**memory.docstrings, **new}.items())[-DOCSTRINGS:]
            return memory.model_copy(update={"docstrings": dict(newest)})

        self._change(add)

    def clear(self) -> tuple[int, int]:
        """Forget everything about the codebase; return the numbers of its tasks and docstrings. Raises OSError."""
        memory = self._load()
        with suppress(FileNotFoundError):
            self._file.unlink()
        return len(memory.episodes), len(memory.docstrings)

    def _load(self) -> _Remembered:
        try:
            if self._file.stat().st_size <= LARGEST:
                return _Remembered.model_validate_json(self._file.read_bytes())
        except (FileNotFoundError, ValidationError):
            pass  # a file that was cut off, or is another version's
        return _Remembered(root=self._root)

    def _change(self, change: Callable[[_Remembered], _Remembered]) -> None:
        private_dirs(self._folder)
        with locked(self._folder / "lock", flags=os.O_RDWR | os.O_CREAT):
            write_private(self._file, change(self._load()).model_dump_json())


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
