"""The log of one session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from sqlalchemy import Connection, select

from handiwork.events.action import AgentFinishAction, AgentState, MessageAction
from handiwork.events.base import Event, utc_now
from handiwork.events.codec import from_json, is_event, read_back, to_json
from handiwork.events.record import SnapshotEvent
from handiwork.log import lease, session
from handiwork.log.blobs import Blobs
from handiwork.log.errors import LeaseLost, LogError, deleted
from handiwork.log.redaction.redactor import Redactor
from handiwork.log.schema import events, sessions
from handiwork.log.session import Segment, SessionInfo
from handiwork.log.subscribers import GONE, Subscribers
from handiwork.log.transaction import Transaction
from handiwork.log.worker import Worker
from handiwork.process import Process

PAGE = 1000


@dataclass(slots=True)
class Shared:
    """The parts that all logs of one store share."""

    worker: Worker
    watch: Subscribers
    redactor: Redactor
    blobs: Blobs
    logs: WeakValueDictionary[str, EventLog] = field(default_factory=WeakValueDictionary[str, "EventLog"])

    def log(self, session_id: str, segments: tuple[Segment, ...]) -> EventLog:
        """Return the one EventLog of a session."""
        return self.logs.setdefault(session_id, EventLog(self, session_id, segments))


class EventLog:
    """The events of the session ``id``, numbered from 1 without gaps; append-only.

    Every method raises LogError, and SessionMissing once the session is deleted.
    """

    def __init__(self, shared: Shared, session_id: str, segments: tuple[Segment, ...]) -> None:
        self.id = session_id
        self._shared = shared
        self._segments = segments
        self._token: str | None = None

    @property
    def redactor(self) -> Redactor:
        """The redactor that removes secrets from every appended event."""
        return self._shared.redactor

    async def append(self, *events: Event, durable: bool = False) -> list[Event]:
        """Store the events, all or none, and return them as stored: with ids, redacted.

        They survive the death of this process; with ``durable``, or if one is a user's message, a finish or a
        snapshot, also that of the machine. Lone surrogates become U+FFFD. Raises LeaseLost if this process does not
        hold the lease, unless all events are the user's. Cancelling the call does not undo it.
        """
        durable = durable or any(
            isinstance(event, AgentFinishAction | SnapshotEvent)
            or (isinstance(event, MessageAction) and event.source == "user")
            for event in events
        )
        stored = await self._shared.worker.write(lambda transaction: self._append(transaction, events), durable)
        self._shared.blobs.release(map(to_json, stored))
        return stored

    def _append(self, transaction: Transaction, events: tuple[Event, ...]) -> list[Event]:
        if any(event.source != "user" for event in events):
            self._check_lease(transaction)
        return self.put(transaction, events)

    def put(self, transaction: Transaction, events: Sequence[Event]) -> list[Event]:
        """Add the events to the transaction; the caller has checked the lease, or is creating the session."""
        head = transaction.head(self.id)
        stored: list[Event] = []
        rows: list[str] = []
        for number, event in enumerate(events, head + 1):
            stored_event, text = self._text(event.with_fields(id=number))
            stored.append(stored_event)
            rows.append(text)
        for event, text in zip(stored, rows, strict=True):
            transaction.add(self.id, event, text)
        return stored

    def _check_lease(self, transaction: Transaction) -> None:
        if self._token is None:
            raise LeaseLost(f"session {self.id} is not run by this process: take its lease first")
        if transaction.token(self.id) != self._token:
            raise LeaseLost(f"session {self.id} was taken over by another process: stop running it here")

    def _text(self, event: Event) -> tuple[Event, str]:
        """Return the event as it will be read back, and its JSON text."""
        event = self.redactor.ends(event)
        text = to_json(event)
        redacted = self.redactor.json(text)
        if redacted == text and "\ufffd" not in text:  # U+FFFD may stand for a lone surrogate
            return event, text
        try:
            return from_json(redacted), redacted
        except ValueError as error:
            raise LogError(f"redacting a {event.kind} broke its JSON, so it was not stored") from error

    async def head(self) -> int:
        """Return the id of the last event, 0 if there is none."""
        return (await self.info()).head

    async def info(self) -> SessionInfo:
        """Return this session's entry in the list of sessions."""

        def read(connection: Connection) -> SessionInfo:
            row = connection.execute(session.select_sessions().where(sessions.c.id == self.id)).mappings().one_or_none()
            if row is None:
                raise deleted(self.id)
            return session.info(row)

        return await self._shared.worker.read(read)

    async def get(self, event_id: int) -> Event:
        """Return the event ``event_id``. Raises LogError if there is none."""
        page = await self._page(event_id - 1, event_id, 1, newest=False)
        if not page:
            raise LogError(f"session {self.id} has no event {event_id}: its events are 1 to {await self.head()}")
        return page[0]

    async def read(self, after: int = 0, limit: int | None = None) -> list[Event]:
        """Return up to ``limit`` events with ids above ``after``, ascending; None means all."""
        result: list[Event] = []
        while limit is None or len(result) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(result))
            page = await self._page(result[-1].id if result else after, None, size, newest=False)
            result += page
            if len(page) < size:
                break
        return result

    async def read_back(self, before: int | None = None, limit: int = 100) -> list[Event]:
        """Return up to ``limit`` events with ids below ``before``, newest first; None starts at the end."""
        return await self._page(0, None if before is None else before - 1, limit, newest=True)

    async def texts(self, after: int = 0, before: int | None = None, limit: int = 100) -> list[str]:
        """Return the JSON texts of up to ``limit`` events between the ids, ascending; with ``before``, the newest ones.

        A reader that only forwards the texts need not parse the events.
        """
        last = None if before is None else before - 1
        texts = await self._shared.worker.read(
            lambda connection: self._texts(connection, after, last, limit, newest=before is not None)
        )
        return texts[::-1] if before is not None else texts

    async def _page(self, after: int, last: int | None, limit: int, *, newest: bool) -> list[Event]:
        return await self._shared.worker.read(
            lambda connection: self._rows(connection, after, last, limit, newest=newest)
        )

    def _rows(self, connection: Connection, after: int, last: int | None, limit: int, *, newest: bool) -> list[Event]:
        numbered = self._numbered(connection, after, last, limit, newest=newest)
        return [read_back(self.id, number, text) for number, text in numbered]

    def _texts(self, connection: Connection, after: int, last: int | None, limit: int, *, newest: bool) -> list[str]:
        numbered = self._numbered(connection, after, last, limit, newest=newest)
        return [
            text if is_event(text, number) else to_json(read_back(self.id, number, text)) for number, text in numbered
        ]

    def _numbered(
        self, connection: Connection, after: int, last: int | None, limit: int, *, newest: bool
    ) -> list[tuple[int, str]]:
        """Return ids and texts of events above ``after`` and up to ``last``, from as many segments as needed."""
        texts: list[tuple[int, str]] = []
        for part in reversed(self._segments) if newest else self._segments:
            low = max(after, part.after)
            high = part.last if last is None else min(last, part.last)
            if low >= high or len(texts) >= limit:
                continue
            rows = connection.execute(
                select(events.c.id, events.c.json)
                .where(events.c.session == part.session, events.c.id > low, events.c.id <= high)
                .order_by(events.c.id.desc() if newest else events.c.id)
                .limit(limit - len(texts))
            )
            texts += [(row.id, row.json) for row in rows]
        return texts

    async def follow(self, after: int = 0) -> AsyncGenerator[Event]:
        """Yield every event with an id above ``after``, existing and new ones, each once and in order.

        Events of this process arrive at once, those of other processes within 100 ms. Ends when the store closes.
        """
        async with aclosing(self.heads()) as heads:
            async for head in heads:
                while after < head and (page := await self._page(after, None, PAGE, newest=False)):
                    for event in page:
                        after = event.id
                        yield event

    async def heads(self) -> AsyncGenerator[int]:
        """Yield the id of the last event, now and after every change, with the same delay as ``follow``."""
        watch = self._shared.watch
        with watch.follower(self.id) as woken:
            head = await self.head()
            while head != GONE:
                yield head
                await woken.wait()
                woken.clear()
                if watch.closed:
                    return
                head = watch.head(self.id)
        raise deleted(self.id)

    async def holder(self) -> Process | None:
        """Return the process that runs the session; None if no process does."""

        def read(connection: Connection) -> Process | None:
            return lease.holder(connection, self.id, utc_now().timestamp())

        return await self._shared.worker.read(read)

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[None]:
        """Hold the session's lease, which allows this process to append as agent and environment.

        A dead process's lease is taken over at once, another machine's once its heartbeat is 30 seconds old.
        Raises LeaseHeld.
        """
        async with lease.hold_lease(self._shared.worker, self.id) as token:
            self._token = token
            try:
                yield
            finally:
                self._token = None

    async def fork(
        self,
        at: int,
        agent: str | None = None,
        model: str | None = None,
        session_id: str | None = None,
        events: Sequence[Event] = (),
        state: AgentState = "loading",
    ) -> EventLog:
        """Create a session that begins with the events up to ``at`` and return its log; None keeps this one's value.

        The prefix is shared, not copied; the new session's next event is ``at + 1``, and 0 shares nothing. The session
        and its own first ``events`` are stored durably together or not at all. ``session_id`` comes from ``fresh_id``.
        Raises LogError if there is no event ``at``.
        """

        def write(transaction: Transaction) -> str:
            head = transaction.head(self.id)
            if not 0 <= at <= head:
                raise LogError(f"session {self.id} cannot be forked at event {at}: its events are 1 to {head}")
            query = session.select_sessions().where(sessions.c.id == self.id)
            old = session.info(transaction.execute(query).mappings().one())
            new_id = session.begin(
                transaction,
                agent=agent or old.agent,
                model=model or old.model,
                workspace=old.workspace,
                owner=old.owner,
                title=old.title,
                parent=self.id,
                parent_event=at,
                state=state,
                session=session_id,
            )
            EventLog(self._shared, new_id, ()).put(transaction, events)
            return new_id

        new_id = await self._shared.worker.write(write, durable=True)
        self._shared.blobs.release(map(to_json, events))
        segments = await self._shared.worker.read(lambda connection: session.segments(connection, new_id))
        return self._shared.log(new_id, segments)
