"""Live output beside the log: pieces of replies and outputs, for clients that follow the session at the time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from handiwork.session.steps.live import OutputDelta, Status, TextDelta

ROOM = 64 * 1024
"""The number of characters kept for a slow reader; beyond it the oldest pieces are dropped."""


class Backlog:
    """The live output waiting to be sent to one follower; ``woken`` is set when a piece arrives."""

    def __init__(self, woken: asyncio.Event) -> None:
        self._woken = woken
        self._waiting: deque[tuple[str, int, str, int]] = deque()
        self._size = 0

    def add(self, kind: str, source: int, text: str, after: int) -> None:
        """Add a piece that came after the event ``after``; join it to a preceding piece of its kind."""
        if self._waiting and kind != "status" and self._waiting[-1][:2] == (kind, source):
            _, _, previous, previous_after = self._waiting[-1]
            if previous_after == after:
                self._waiting.pop()
                text = previous + text
                self._size -= len(previous)
        self._waiting.append((kind, source, text, after))
        self._size += len(text)
        while self._size > ROOM:
            self._size -= len(self._waiting.popleft()[2])
        self._woken.set()

    def take(self, after: int) -> list[dict[str, Any]]:
        """Remove and return the pieces whose last event was ``after`` or an earlier one, as JSON objects."""
        messages: list[dict[str, Any]] = []
        while self._waiting and self._waiting[0][3] <= after:
            piece = self._waiting.popleft()
            self._size -= len(piece[2])
            messages.append(_message(*piece))
        return messages


class Channels:
    """The followers of each session."""

    def __init__(self) -> None:
        self._followers: dict[str, set[Backlog]] = {}

    @property
    def count(self) -> int:
        """The number of followers."""
        return sum(map(len, self._followers.values()))

    @contextmanager
    def joined(self, session: str, woken: asyncio.Event) -> Generator[Backlog]:
        """Collect the session's live output for a new follower inside the context."""
        backlog = Backlog(woken)
        self._followers.setdefault(session, set()).add(backlog)
        try:
            yield backlog
        finally:
            self._followers[session].discard(backlog)
            if not self._followers[session]:
                del self._followers[session]

    def say(self, session: str, item: TextDelta | OutputDelta | Status, after: int) -> None:
        """Give the followers a piece that came after the event ``after``."""
        for backlog in self._followers.get(session, ()):
            match item:
                case TextDelta():
                    backlog.add("text", item.subtask, item.text, after)
                case OutputDelta():
                    backlog.add("output", item.action, item.text, after)
                case Status():
                    backlog.add("status", 0, item.text, after)


def _message(kind: str, source: int, text: str, after: int) -> dict[str, Any]:
    names = {"text": {"subtask": source}, "output": {"action": source}, "status": {}}
    return {"transient": kind, "after": after, **names[kind], "text": text}
