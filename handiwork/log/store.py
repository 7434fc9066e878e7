"""The sessions of one data folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import ColumnElement, Connection, delete, insert, select, tuple_, update

from handiwork.events.action import AgentState
from handiwork.events.base import Event, utc_now
from handiwork.events.codec import read_back, to_json
from handiwork.log import lease, schema, session
from handiwork.log.blobs import Blobs, digests_in
from handiwork.log.errors import LeaseHeld, SessionShared
from handiwork.log.eventlog import PAGE, EventLog, Shared
from handiwork.log.lists import pages
from handiwork.log.lists.pages import Cursor, SessionList
from handiwork.log.redaction.redactor import Redactor
from handiwork.log.schema import details, events, leases, sessions
from handiwork.log.session import SessionInfo
from handiwork.log.subscribers import GONE, Subscribers
from handiwork.log.transaction import Transaction
from handiwork.log.worker import Worker

E = TypeVar("E", bound=Event)


class Store:
    """All sessions of a data folder, with their events and blobs; used from one event loop.

    Every method raises LogError if the database fails.
    """

    def __init__(self, data: Path) -> None:
        self.folder = data
        self.redactor = Redactor()
        """Removes secrets from all stored data; the secrets it learns stay in memory."""
        self.blobs = Blobs(data / "blobs", self.redactor)
        watch = Subscribers()
        self._shared = Shared(Worker(data, watch), watch, self.redactor, self.blobs)

    @classmethod
    def open(cls, data: Path) -> Store:
        """Return the store of the folder ``data``, which is created on first use if missing.

        Does not access the folder: ``async with`` or the first operation raises its errors.
        """
        return cls(data)

    async def __aenter__(self) -> Self:
        try:
            await self.sessions(limit=1)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Run the queued operations, end all followers and close the database."""
        self._shared.watch.close()
        await self._shared.worker.close()
        self.blobs.close()

    async def create(
        self,
        *,
        agent: str,
        model: str,
        workspace: str = "",
        owner: str = "",
        title: str = "",
        session_id: str | None = None,
        events: Sequence[Event] = (),
        state: AgentState = "loading",
    ) -> EventLog:
        """Create a session that begins with ``events`` and return its log; both are stored durably, or neither.

        ``session_id`` comes from ``fresh_id``.
        """
        clear = self.redactor.text(title)

        def write(transaction: Transaction) -> str:
            new_id = session.begin(
                transaction,
                agent=agent,
                model=model,
                workspace=workspace,
                owner=owner,
                title=clear,
                state=state,
                session=session_id,
            )
            EventLog(self._shared, new_id, ()).put(transaction, first)
            return new_id

        first = tuple(events)
        new_id = await self._shared.worker.write(write, durable=True)
        self.blobs.release(map(to_json, first))
        return await self.log(new_id)

    async def log(self, session_id: str) -> EventLog:
        """Return the log of a session, given its id or a prefix of it.

        Raises SessionMissing if no id begins with the prefix, or several do.
        """

        def read(connection: Connection) -> tuple[str, tuple[session.Segment, ...]]:
            full_id = session.resolve(connection, session_id)
            return full_id, session.segments(connection, full_id)

        return self._shared.log(*await self._shared.worker.read(read))

    async def sessions(
        self,
        limit: int | None = None,
        text: str = "",
        state: AgentState | None = None,
        archived: bool | None = None,
    ) -> list[SessionInfo]:
        """Return the sessions, newest first, at most ``limit`` of them.

        ``text`` selects sessions with that text in their title, workspace, model, agent, messages, commands or results,
        or at the start of their id; ``archived`` only those that are, or only those that are not.
        """
        order = (sessions.c.created, sessions.c.id)

        def read(connection: Connection) -> list[SessionInfo]:
            query = pages.filtered(session.select_sessions(), text, state, archived)
            query = query.order_by(*(column.desc() for column in order)).limit(limit)
            return [session.info(row) for row in connection.execute(query).mappings()]

        return await self._shared.worker.read(read)

    async def waiting_first(
        self,
        limit: int = 50,
        after: Cursor | None = None,
        text: str = "",
        state: AgentState | None = None,
        archived: bool | None = None,
    ) -> SessionList:
        """Return up to ``limit`` sessions as ``sessions`` does, but first those that need the user.

        A session that changes its state between two pages may be on both, or on neither; no other session is.
        """

        def read(connection: Connection) -> SessionList:
            query = pages.filtered(session.select_sessions(), text, state, archived)
            return pages.waiting_first(connection, query, limit, after, utc_now().timestamp())

        return await self._shared.worker.read(read)

    async def interrupted(self, info: SessionInfo) -> bool:
        """Return whether a session was running, or had not begun, when its process ended."""
        return info.state in ("loading", "running") and await (await self.log(info.id)).holder() is None

    async def interrupted_ids(self) -> list[str]:
        """Return the ids of the sessions whose process ended while they were running."""
        return await self._shared.worker.read(lambda connection: lease.interrupted(connection, utc_now().timestamp()))

    async def changed(self, since: float) -> list[SessionInfo]:
        """Return the sessions that changed or grew at or after the time ``since`` (seconds, UTC)."""

        def read(connection: Connection) -> list[SessionInfo]:
            query = session.select_sessions().where(sessions.c.updated >= since).order_by(sessions.c.updated)
            return [session.info(row) for row in connection.execute(query).mappings()]

        return await self._shared.worker.read(read)

    async def family(self, session_id: str) -> list[SessionInfo]:
        """Return a session, all its ancestors and all their forks, parents first.

        Raises SessionMissing.
        """

        def rows(connection: Connection, condition: ColumnElement[bool]) -> list[SessionInfo]:
            return [
                session.info(row)
                for row in connection.execute(
                    session.select_sessions().where(condition).order_by(sessions.c.parent_event, sessions.c.created)
                ).mappings()
            ]

        def read(connection: Connection) -> list[SessionInfo]:
            result = rows(connection, sessions.c.id == session.resolve(connection, session_id))
            visited = {result[0].id}
            while (parent := result[0].parent) is not None and parent not in visited:
                visited.add(parent)
                if not (above := rows(connection, sessions.c.id == parent)):
                    break
                result = above
            level, ids = result, {result[0].id}
            while level := rows(connection, sessions.c.parent.in_([info.id for info in level])):
                level = [info for info in level if info.id not in ids]
                ids |= {info.id for info in level}
                result += level
            return result

        return await self._shared.worker.read(read)

    async def events_of(self, kind: type[E]) -> dict[str, list[E]]:
        """Return all events of one type, ascending, keyed by the session they were appended to."""

        def read(connection: Connection) -> list[tuple[str, int, str]]:
            query = select(events.c.session, events.c.id, events.c.json).where(events.c.type == kind.__name__)
            rows = connection.execute(query.order_by(events.c.session, events.c.id))
            return [(row.session, row.id, row.json) for row in rows]

        result: dict[str, list[E]] = {}
        for session_id, number, text in await self._shared.worker.read(read):
            if isinstance(event := read_back(session_id, number, text), kind):
                result.setdefault(session_id, []).append(event)
        return result

    async def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        state: AgentState | None = None,
        archived: bool | None = None,
        spent: float | None = None,
        lines: tuple[int, int] | None = None,
    ) -> None:
        """Set the fields that are not None; ``lines`` are the added and deleted ones. Raises SessionMissing."""
        added, deleted = lines or (None, None)
        fields = {"archived": archived, "spent": spent, "added": added, "deleted": deleted}
        known = {name: value for name, value in fields.items() if value is not None}
        clear = None if title is None else self.redactor.text(title)
        values = {name: value for name, value in (("title", clear), ("state", state)) if value is not None}

        def write(transaction: Transaction) -> None:
            transaction.head(session_id)
            transaction.execute(
                update(sessions).where(sessions.c.id == session_id).values(**values, updated=transaction.now)
            )
            if known:
                changed = transaction.execute(update(details).where(details.c.session == session_id).values(**known))
                if changed.rowcount == 0:
                    transaction.execute(insert(details).values(session=session_id, **known))

        await self._shared.worker.write(write)

    async def delete(self, session_id: str) -> None:
        """Delete a session, its events, and the blobs that only they refer to.

        Raises SessionMissing, SessionShared, LeaseHeld.
        """
        referred: set[str] = set()
        async for texts in self._texts(session_id):
            referred |= digests_in(texts)

        def write(transaction: Transaction) -> None:
            transaction.head(session_id)
            if (runner := lease.holder(transaction, session_id, transaction.now)) is not None:
                raise LeaseHeld(session_id, runner.host, runner.pid)
            forks = transaction.execute(select(sessions.c.id).where(sessions.c.parent == session_id))
            if names := ", ".join(forks.scalars()):
                raise SessionShared(f"session {session_id} has forks that read its events: delete {names} first")
            transaction.execute(delete(leases).where(leases.c.session == session_id))
            for table in (events, schema.contents, details):
                transaction.execute(delete(table).where(table.c.session == session_id))
            transaction.execute(delete(sessions).where(sessions.c.id == session_id))
            transaction.heads[session_id] = GONE

        await self._shared.worker.write(write)
        await self._remove_unreferred(referred)

    async def remove_blobs(self) -> int:
        """Remove the blobs that no event refers to, except held ones; return the bytes freed."""
        return await asyncio.to_thread(self.blobs.remove_parts) + await self._remove_unreferred(None)

    async def _remove_unreferred(self, among: Collection[str] | None) -> int:
        # Listed before the log is read: a blob that gets its first reference later has changed times by then.
        listed = await asyncio.to_thread(self.blobs.listed, among)
        if not listed:
            return 0
        async for texts in self._texts():
            for digest in digests_in(texts):
                listed.pop(digest, None)
        return await asyncio.to_thread(self.blobs.remove, listed)

    async def _texts(self, session_id: str | None = None) -> AsyncGenerator[list[str]]:
        """Yield pages of the JSON texts of all events, or of those that one session does not share with its parent."""
        position, after = tuple_(events.c.session, events.c.id), ("", 0)
        while True:
            query = (
                select(events.c.session, events.c.id, events.c.json)
                .where(position > after)
                .order_by(*position)
                .limit(PAGE)
            )
            if session_id is not None:
                query = query.where(events.c.session == session_id)
            rows = await self._shared.worker.read(lambda connection, query=query: connection.execute(query).all())
            if not rows:
                return
            yield [str(row.json) for row in rows]
            after = (rows[-1].session, rows[-1].id)
