"""Followers that wait for sessions to grow."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from handiwork.log.errors import LogError

GONE = -1
"""The head of a deleted session."""


class Subscribers:
    """The newest known event of every followed session. Used only on the event loop."""

    def __init__(self) -> None:
        self._heads: dict[str, int] = {}
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._closed = False

    @property
    def sessions(self) -> list[str]:
        """The sessions that are followed; may be read from any thread."""
        return list(self._waiting)

    @contextmanager
    def follower(self, session: str) -> Generator[asyncio.Event]:
        """Yield an asyncio.Event that is set whenever the session may have grown or was deleted.

        Raises LogError once closed.
        """
        if self._closed:
            raise LogError("the store is closed")
        woken = asyncio.Event()
        self._waiting.setdefault(session, []).append(woken)
        try:
            yield woken
        finally:
            waiting = self._waiting[session]
            waiting.remove(woken)
            if not waiting:
                del self._waiting[session]
                self._heads.pop(session, None)

    def head(self, session: str) -> int:
        """Return the id of the newest known event of a session whose follower was woken, or GONE."""
        return self._heads[session]

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def publish(self, heads: Mapping[str, int]) -> None:
        """Wake the followers of sessions whose last event has changed."""
        for session, head in heads.items():
            if session in self._waiting and self._heads.get(session) != head:
                self._heads[session] = head
                for woken in self._waiting[session]:
                    woken.set()

    def close(self) -> None:
        """Wake all followers so that they end; refuse new ones."""
        self._closed = True
        for waiting in self._waiting.values():
            for woken in waiting:
                woken.set()
