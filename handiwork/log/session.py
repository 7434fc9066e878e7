"""What a session is besides its events, and how one begins."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from handiwork.events.action import AgentState
from handiwork.log.errors import SessionMissing
from handiwork.log.schema import sessions
from handiwork.log.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as lists show it.

    ``parent`` is the session it was forked from and ``parent_event`` the last event they share; ``head`` is
    the id of the last event. Times are UTC; ``updated`` is that of the last append or change.
    """

    id: str
    owner: str
    title: str
    agent: str
    model: str
    workspace: str
    state: AgentState
    created: datetime
    updated: datetime
    parent: str | None
    parent_event: int
    head: int


def deleted(session: str) -> SessionMissing:
    """Return the error for a session that was there once."""
    return SessionMissing(f"session {session} has been deleted")


def info(row: RowMapping) -> SessionInfo:
    """Return the row of the sessions table as a SessionInfo."""
    fields = dict[str, Any](row)
    for name in ("created", "updated"):
        fields[name] = datetime.fromtimestamp(fields[name], UTC)
    return SessionInfo(**fields)


def fresh_id() -> str:
    """Return an id that no session has."""
    return secrets.token_hex(8)


def begin(
    transaction: Transaction,
    *,
    agent: str,
    model: str,
    workspace: str,
    owner: str,
    title: str,
    parent: str | None = None,
    parent_event: int = 0,
    session: str | None = None,
) -> str:
    """Make a session and return its id, which is ``session`` where that is given."""
    session = session or fresh_id()
    transaction.execute(
        insert(sessions).values(
            id=session,
            owner=owner,
            title=title,
            agent=agent,
            model=model,
            workspace=workspace,
            state="loading",
            created=transaction.now,
            updated=transaction.now,
            parent=parent,
            parent_event=parent_event,
            head=parent_event,
        )
    )
    return session


def resolve(connection: Connection, prefix: str) -> str:
    """Return the id of the one session that begins with ``prefix``. Raises SessionMissing."""
    found = connection.scalars(
        select(sessions.c.id).where(sessions.c.id.startswith(prefix, autoescape=True)).order_by(sessions.c.id).limit(4)
    ).all()
    if prefix in found:
        return prefix
    if prefix and len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(found[:3])
        raise SessionMissing(f"{prefix!r} begins the id of several sessions ({some}, ...): write more of it")
    raise SessionMissing(f"no session's id begins with {prefix!r}")


@dataclass(frozen=True, slots=True)
class Segment:
    """Events after ``after``, up to and with ``last``, are rows of ``session``."""

    session: str
    after: int
    last: int


def segments(connection: Connection, session: str) -> tuple[Segment, ...]:
    """Return where the events of a session are, oldest first: a fork's prefix is in its parents.

    Raises SessionMissing.
    """
    found: list[Segment] = []
    current: str | None = session
    last = 2**62
    while current is not None and last > 0:
        row = connection.execute(
            select(sessions.c.parent, sessions.c.parent_event).where(sessions.c.id == current)
        ).one_or_none()
        if row is None:
            raise deleted(current)
        if row.parent_event < last:
            found.append(Segment(current, row.parent_event, last))
        current, last = row.parent, min(last, row.parent_event)
    return tuple(reversed(found))
