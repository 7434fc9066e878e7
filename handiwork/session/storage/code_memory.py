"""The memory of codebases: the results of earlier tasks with a folder's code, kept in the user's data folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from handiwork.events.base import Model
from handiwork.events.code_memory import CodeEpisode
from handiwork.paths import locked

EPISODES, RECALLED, LARGEST = 100, 3, 4_000_000
"""Tasks that are remembered of a codebase, those that are recalled for a new one, and bytes of the largest file."""

_WORD = re.compile(r"[^\W\d_]{3,}")


class _Remembered(Model):
    """A file: the folder of the codebase, and its tasks from the oldest on."""

    root: str
    episodes: tuple[CodeEpisode, ...] = ()


class CodeMemory:
    """The memory of the codebase in the folder ``root``, in ``data``. ``redact`` takes secrets out of texts."""

    def __init__(self, data: Path, root: str, redact: Callable[[str], str] = str) -> None:
        self._folder, self._root, self._redact = data / "codebases", root, redact
        self._file = self._folder / f"{hashlib.sha256(root.encode(errors='surrogateescape')).hexdigest()[:32]}.json"

    def episodes(self) -> tuple[CodeEpisode, ...]:
        """Return all that is remembered, the newest last. Raises OSError."""
        try:
            if self._file.stat().st_size <= LARGEST:
                return _Remembered.model_validate_json(self._file.read_bytes()).episodes
        except (FileNotFoundError, ValidationError):
            pass  # a file that was cut off, or is another version's
        return ()

    def recall(self, task: str) -> tuple[CodeEpisode, ...]:
        """Return the episodes whose tasks share the most words with the task, the best first. Raises OSError."""
        words = _words(task)
        newest_first = self.episodes()[::-1]
        return tuple(sorted(newest_first, key=lambda one: -len(words & _words(one.task)))[:RECALLED])

    def remember(self, episode: CodeEpisode) -> None:
        """Add an episode, in the place of an older one with the same task. Raises OSError."""
        episode = CodeEpisode.model_validate_json(self._redact(episode.model_dump_json()))
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._folder / "lock", flags=os.O_RDWR | os.O_CREAT):
            others = [one for one in self.episodes() if one.task != episode.task]
            remembered = _Remembered(root=self._root, episodes=(*others, episode)[-EPISODES:])
            new = self._file.with_suffix(".new")
            new.touch(mode=0o600)
            new.write_text(remembered.model_dump_json())
            new.replace(self._file)

    def clear(self) -> int:
        """Forget everything about the codebase; return the number of episodes. Raises OSError."""
        count = len(self.episodes())
        with suppress(FileNotFoundError):
            self._file.unlink()
        return count


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
