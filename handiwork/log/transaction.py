"""A write transaction that collects appends and writes them in one batch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable, bindparam, insert, select, update

from handiwork.events.base import Event
from handiwork.log.errors import damaged, deleted
from handiwork.log.lists.contents import text_of
from handiwork.log.schema import contents, events, leases, sessions

_HEAD = select(sessions.c.head).where(sessions.c.id == bindparam("session")).with_for_update()
_TOKEN = select(leases.c.token).where(leases.c.session == bindparam("session"))
_INSERT = insert(events)
_INSERT_TEXTS = insert(contents)
_ADVANCE = (
    update(sessions).where(sessions.c.id == bindparam("session")).values(head=bindparam("to"), updated=bindparam("now"))
)


class Transaction:
    """One write transaction of one or more operations.

    Heads and leases stay valid after it has read them, because it holds the write lock.
    """

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.now = now.timestamp()
        self.heads: dict[str, int] = {}
        """The last event id of every changed session, for the followers."""
        self._connection = connection
        self._heads: dict[str, int] = {}
        self._tokens: dict[str, str | None] = {}
        self._rows: list[dict[str, Any]] = []
        self._texts: list[dict[str, Any]] = []

    def execute(self, statement: Executable) -> CursorResult[Any]:
        """Run a statement, which sees all earlier appends."""
        self.flush()
        self._tokens.clear()
        self._heads.clear()
        return self._connection.execute(statement)  # pyright: ignore[reportReturnType] (Core gives a CursorResult)

    def head(self, session: str) -> int:
        """Return the id of the session's last event, 0 if there is none. Raises SessionMissing."""
        if session not in self._heads:
            head = self._connection.execute(_HEAD, {"session": session}).scalar()
            if head is None:
                raise deleted(session)
            if not isinstance(head, int) or head < 0:
                raise damaged(session, f"head is {head!r}")
            self._heads[session] = head
        return self._heads[session]

    def token(self, session: str) -> str | None:
        """Return the token of the session's lease; None if no process holds it."""
        if session not in self._tokens:
            self._tokens[session] = self._connection.execute(_TOKEN, {"session": session}).scalar()
        return self._tokens[session]

    def add(self, session: str, event: Event, json: str) -> None:
        """Append an event; its id must be the head's successor."""
        self.heads[session] = self._heads[session] = event.id
        self._rows.append(
            {
                "session": session,
                "id": event.id,
                "type": event.kind,
                "timestamp": event.timestamp.timestamp(),
                "json": json,
            }
        )
        if text := text_of(event):
            self._texts.append({"session": session, "id": event.id, "text": text})

    def flush(self) -> None:
        """Write the collected appends to the database."""
        if not self._rows:
            return
        self._connection.execute(_INSERT, self._rows)
        if self._texts:
            self._connection.execute(_INSERT_TEXTS, self._texts)
            self._texts.clear()
        last = {row["session"]: row["id"] for row in self._rows}
        self._connection.execute(
            _ADVANCE, [{"session": session, "to": head, "now": self.now} for session, head in last.items()]
        )
        self._rows.clear()
