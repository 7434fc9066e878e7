"""Messages that stay the same objects from call to call, so that each is brought into its wire form once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVarTuple

from handiwork.llm.types import Message

Source = TypeVarTuple("Source")


class MessageCache:
    """The messages of the last conversation, each with what it was made from."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[object, Sequence[Message]]] = {}
        self._now: dict[Hashable, tuple[object, Sequence[Message]]] = {}

    def begin(self) -> None:
        """Begin the next conversation; what the last one did not have any more is forgotten."""
        self._last, self._now = self._now, {}

    def get_or_build(
        self, key: Hashable, source: tuple[*Source], make: Callable[[*Source], Iterable[Message]]
    ) -> Sequence[Message]:
        """Return the messages known by ``key``, made anew if ``source`` is not what they were made from."""
        known = self._last.get(key)
        if known is None or known[0] != source:
            known = (source, list(make(*source)))
        self._now[key] = known
        return known[1]
