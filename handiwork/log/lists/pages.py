"""The list of sessions in pages: those that need the user come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, Select, case, func, literal, or_, select, tuple_

from handiwork.events.action import AgentState
from handiwork.log import lease, session
from handiwork.log.lists import contents
from handiwork.log.schema import details, sessions
from handiwork.log.session import LAST_MOMENT, SessionInfo

_WITHOUT_USER: tuple[AgentState, ...] = ("loading", "running", "stopped", "finished", "rejected")
"""The states of sessions that need no user unless interrupted; web/src/steering/attention.ts has the others."""


class Cursor(NamedTuple):
    """The place of a session in the list that begins with the sessions that need the user."""

    waits: int
    created: float
    id: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cursor with this text. Raises ValueError."""
        waits, created, session_id = text.split(":", 2)
        return cls(int(waits == "1"), float(created), session_id)

    def __str__(self) -> str:
        return f"{self.waits}:{self.created!r}:{self.id}"


@dataclass(frozen=True, slots=True)
class SessionList:
    """Some sessions of a list; ``next`` is the cursor of the next ones, ``waiting`` counts all that need the user."""

    sessions: list[SessionInfo]
    next: Cursor | None
    waiting: int


def filtered(query: Select[Any], text: str, state: AgentState | None, archived: bool | None) -> Select[Any]:
    """Return a query of ``select_sessions`` for those with the text and the state that are archived, or are not."""
    if text:
        columns = (sessions.c.title, sessions.c.workspace, sessions.c.model, sessions.c.agent)
        matches = or_(*(column.icontains(text, autoescape=True) for column in columns))
        query = query.where(matches | sessions.c.id.startswith(text, autoescape=True) | contents.holds(text))
    if state is not None:
        query = query.where(sessions.c.state == state)
    if archived is not None:
        query = query.where(func.coalesce(details.c.archived, False) == archived)
    return query


def waiting_first(
    connection: Connection, query: Select[Any], limit: int, after: Cursor | None, now: float
) -> SessionList:
    """Return up to ``limit`` sessions of a query of ``select_sessions``: those that need the user, then the others.

    Both are sorted newest first; with ``after``, only the sessions behind that place. Interrupted sessions, as at the
    time ``now``, need the user.
    """
    # Total even for a damaged row, which `info` gives the state "error" and the time 0.
    needs = sessions.c.id.in_(lease.interrupted(connection, now))
    waits = case((needs, 1), (sessions.c.state.in_(_WITHOUT_USER), 0), else_=1)
    created = case((sessions.c.created.between(0, LAST_MOMENT), sessions.c.created), else_=0.0)
    place = (waits, created, sessions.c.id)
    page = query.add_columns(waits.label("waits"), created.label("moment"))
    page = page.order_by(*(column.desc() for column in place)).limit(limit + 1)
    if after is not None:
        page = page.where(tuple_(*place) < tuple_(*map(literal, after)))
    rows = [dict[str, Any](row) for row in connection.execute(page).mappings()]
    places = [Cursor(row.pop("waits"), row.pop("moment"), row["id"]) for row in rows]
    waiting = connection.scalar(select(func.count()).select_from(query.where(waits == 1).subquery())) or 0
    return SessionList(
        [session.info(row) for row in rows[:limit]], places[limit - 1] if len(rows) > limit else None, waiting
    )
