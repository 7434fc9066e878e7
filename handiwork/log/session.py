"""The metadata of sessions, and their creation."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from sqlalchemy import Connection, Select, func, insert, select

from handiwork.events.action import AgentState
from handiwork.log.errors import SessionMissing, damaged, deleted
from handiwork.log.schema import details, sessions
from handiwork.log.transaction import Transaction

ROLLOUT = "evaluation"
"""The owner of sessions that are copies of an evaluation's rollouts."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session's entry in lists.

    ``parent`` is the session it was forked from and ``parent_event`` the last event they share; ``head`` is
    the id of the last event. Times are UTC; ``updated`` is the time of the last append or change. ``spent`` is in USD,
    ``added`` and ``deleted`` are lines of the changes, all as of the end of the last run; None is unknown.
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
    archived: bool = False
    spent: float | None = None
    added: int | None = None
    deleted: int | None = None

    @property
    def read_only(self) -> bool:
        """Whether the session is a copy of a rollout of an evaluation: it can only be read."""
        return self.owner == ROLLOUT


_STEP = 1e-6
"""Minimum number of seconds between the creation of two sessions."""


def select_sessions() -> Select[Any]:
    """Return a query for the rows that ``info`` takes."""
    columns = [details.c[name] for name in ("archived", "spent", "added", "deleted")]
    return select(sessions, *columns).select_from(sessions.outerjoin(details, details.c.session == sessions.c.id))


def info(row: Mapping[Any, Any]) -> SessionInfo:
    """Return the row of the sessions table as a SessionInfo."""
    fields = dict[str, Any](row)
    fields["archived"] = bool(fields["archived"])
    wrong = [name for name, check in _CHECKS.items() if not check(fields[name])]
    fields |= {name: _DEFAULTS[name] for name in wrong}
    if wrong:
        fields["title"] = (
            f"(damaged: the log's row of session {fields['id']} has no valid {', '.join(wrong)}; "
            "restore the log from a backup, or delete the session)"
        )
    for name in ("created", "updated"):
        fields[name] = datetime.fromtimestamp(fields[name], UTC)
    return SessionInfo(**fields)


_STATES = frozenset(get_args(AgentState))
LAST_MOMENT = 253_402_300_799
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("owner", "title", "agent", "model", "workspace"), "?"),
    "state": "error",
    "created": 0.0,
    "updated": 0.0,
    "parent": None,
    "parent_event": 0,
    "head": 0,
    **dict.fromkeys(("spent", "added", "deleted")),
}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= LAST_MOMENT


def _is_number(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_amount(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _is_number_or_none(value: object) -> bool:
    return value is None or _is_number(value)


_CHECKS: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(("owner", "title", "agent", "model", "workspace"), _is_text),
    "state": lambda value: value in _STATES,
    "created": _is_moment,
    "updated": _is_moment,
    "parent": lambda value: value is None or isinstance(value, str),
    "parent_event": _is_number,
    "head": _is_number,
    "spent": _is_amount,
    **dict.fromkeys(("added", "deleted"), _is_number_or_none),
}


def fresh_id() -> str:
    """Return an unused session id."""
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
    state: AgentState = "loading",
    session: str | None = None,
) -> str:
    """Create a session and return its id, ``session`` if given."""
    session = session or fresh_id()
    # Lists are sorted by this time: a later session must come first even if the clock was set back.
    latest = transaction.execute(select(func.max(sessions.c.created)).where(sessions.c.created <= LAST_MOMENT)).scalar()
    created = max(transaction.now, latest + _STEP if isinstance(latest, int | float) else 0.0)
    transaction.execute(
        insert(sessions).values(
            id=session,
            owner=owner,
            title=title,
            agent=agent,
            model=model,
            workspace=workspace,
            state=state,
            created=created,
            updated=transaction.now,
            parent=parent,
            parent_event=parent_event,
            head=parent_event,
        )
    )
    return session


def resolve(connection: Connection, prefix: str) -> str:
    """Return the session id that is ``prefix``, or the only one that begins with it. Raises SessionMissing."""
    # The whole id first, by the primary key: the search for a prefix reads all ids.
    if connection.scalar(select(sessions.c.id).where(sessions.c.id == prefix)) is not None:
        return prefix
    ids = connection.scalars(
        select(sessions.c.id).where(sessions.c.id.startswith(prefix, autoescape=True)).order_by(sessions.c.id).limit(4)
    ).all()
    if prefix and len(ids) == 1:
        return ids[0]
    if ids:
        examples = ", ".join(ids[:3])
        raise SessionMissing(f"several session ids begin with {prefix!r} ({examples}, ...): give more characters")
    raise SessionMissing(f"no session's id begins with {prefix!r}")


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows of ``session`` that hold the events after ``after``, up to and including ``last``."""

    session: str
    after: int
    last: int


def segments(connection: Connection, session: str) -> tuple[Segment, ...]:
    """Return the segments of a session's events, oldest first: a fork reads its prefix from its parents.

    Raises SessionMissing.
    """
    result: list[Segment] = []
    current: str | None = session
    last = 2**62
    visited: set[str] = set()
    while current is not None and last > 0:
        if current in visited:
            raise damaged(session, "it is forked from itself")
        visited.add(current)
        row = connection.execute(
            select(sessions.c.parent, sessions.c.parent_event).where(sessions.c.id == current)
        ).one_or_none()
        if row is None:
            raise deleted(current)
        if not _is_number(row.parent_event) or not (row.parent is None or isinstance(row.parent, str)):
            raise damaged(current, "its parent is invalid")
        if row.parent_event < last:
            result.append(Segment(current, row.parent_event, last))
        current, last = row.parent, min(last, row.parent_event)
    return tuple(reversed(result))
