"""A cache of message objects across model calls, so that each is converted to its wire form once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVarTuple

from handiwork.llm.types import Message

Source = TypeVarTuple("Source")


class MessageCache:
    """The messages of the last conversation, each with its source."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[object, Sequence[Message]]] = {}
        self._current: dict[Hashable, tuple[object, Sequence[Message]]] = {}

    def begin(self) -> None:
        """Begin the next conversation; drop messages that the last one did not use."""
        self._last, self._current = self._current, {}

    def get_or_build(
        self, key: Hashable, source: tuple[*Source], make: Callable[[*Source], Iterable[Message]]
    ) -> Sequence[Message]:
        """Return the messages of ``key``; rebuild them if ``source`` differs from their source."""
        entry = self._last.get(key)
        if entry is None or entry[0] != source:
            entry = (source, list(make(*source)))
        self._current[key] = entry
        return entry[1]
