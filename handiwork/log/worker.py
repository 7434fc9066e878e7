"""The only thread of a store that accesses the database."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from handiwork.events.base import utc_now
from handiwork.log.database import Database
from handiwork.log.errors import LogError
from handiwork.log.schema import sessions
from handiwork.log.subscribers import GONE, Subscribers
from handiwork.log.transaction import Transaction

T = TypeVar("T")
POLL_SECONDS = 0.05
MAX_BATCH = 1000


@dataclass(slots=True, eq=False)
class _Job:
    future: asyncio.Future[Any]
    read: Callable[[Connection], Any] | None = None
    write: Callable[[Transaction], Any] | None = None
    durable: bool = False
    result: Any = None
    error: Exception | None = None


class Worker:
    """Runs reads and writes in the order of their arrival; consecutive queued writes share one transaction.

    Operations must be repeatable: if one of a batch fails, the batch is rolled back and each runs again alone.
    Cancelling the caller does not undo its operation.
    """

    def __init__(self, data: Path, watch: Subscribers) -> None:
        self._data = data
        self._watch = watch
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._version: int | str | None = None
        self._next_poll = 0.0
        self._thread = threading.Thread(target=self._serve, name="handiwork-log", daemon=True)
        self._thread.start()

    async def read(self, read: Callable[[Connection], T]) -> T:
        """Run ``read`` in a read transaction. Raises LogError and the exceptions of ``read``."""
        return await self._submit(_Job(asyncio.get_running_loop().create_future(), read=read))

    async def write(self, write: Callable[[Transaction], T], durable: bool = False) -> T:
        """Run ``write`` in a write transaction, committed when this returns, and on disk if ``durable``.

        Raises LogError and the exceptions of ``write``; it then stores nothing.
        """
        job = _Job(asyncio.get_running_loop().create_future(), write=write, durable=durable)
        return await self._submit(job)

    def _submit(self, job: _Job) -> asyncio.Future[Any]:
        if self._closing:
            raise LogError("the store is closed")
        self._loop = job.future.get_loop()
        self._queue.put(job)
        return job.future

    async def close(self) -> None:
        """Run the queued jobs, close the database and end the thread."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        database: Database | None = None
        failure: LogError | None = None
        try:
            database = Database(self._data)
        except LogError as error:
            failure = error
        closing = False
        while not closing:
            jobs, closing = self._take()
            if database is None:
                for job in jobs:
                    job.error = failure
                self._deliver(jobs, {})
                continue
            self._run(database, jobs)
            self._poll(database)
        if database is not None:
            with contextlib.suppress(LogError):
                database.close()

    def _take(self) -> tuple[list[_Job], bool]:
        """Wait for jobs and return all queued ones, and whether the store closes after them."""
        jobs: list[_Job] = []
        try:
            job = self._queue.get(timeout=POLL_SECONDS if self._watch.sessions else None)
            while job is not None:
                jobs.append(job)
                if len(jobs) == MAX_BATCH:
                    return jobs, False
                job = self._queue.get_nowait()
        except queue.Empty:
            return jobs, False
        return jobs, True

    def _run(self, database: Database, jobs: list[_Job]) -> None:
        """Run the jobs in order, neighbouring writes together."""
        start = 0
        while start < len(jobs):
            end = start + 1
            if jobs[start].read is not None:
                self._read(database, jobs[start])
            else:
                while end < len(jobs) and jobs[end].write is not None:
                    end += 1
                self._write(database, jobs[start:end])
            start = end

    def _read(self, database: Database, job: _Job) -> None:
        assert job.read is not None
        try:
            with database.reading() as connection:
                job.result = job.read(connection)
        except Exception as error:  # noqa: BLE001 (the job's caller gets it)
            job.error = error
        self._deliver([job], {})

    def _write(self, database: Database, jobs: list[_Job]) -> None:
        transaction: Transaction | None = None
        try:
            with database.writing(any(job.durable for job in jobs)) as connection:
                transaction = Transaction(connection, utc_now())
                for job in jobs:
                    assert job.write is not None
                    job.result = job.write(transaction)
                transaction.flush()
        except Exception as error:  # noqa: BLE001 (the job's caller gets it)
            if len(jobs) > 1 and transaction is not None:
                for job in jobs:
                    self._write(database, [job])
                return
            for job in jobs:
                job.error = error
            self._deliver(jobs, {})
            return
        self._deliver(jobs, transaction.heads)

    def _poll(self, database: Database) -> None:
        """Notify the followers of other processes' appends, a few times a second."""
        watched = self._watch.sessions
        if not watched or time.monotonic() < self._next_poll:
            return
        self._next_poll = time.monotonic() + POLL_SECONDS
        with contextlib.suppress(LogError):  # the followers' next operation raises it
            version = database.version()
            if version == self._version:
                return
            with database.reading() as connection:
                rows = connection.execute(select(sessions.c.id, sessions.c.head).where(sessions.c.id.in_(watched)))
                heads = {**dict.fromkeys(watched, GONE), **{row.id: row.head for row in rows}}
            self._version = version
            self._deliver([], heads)

    def _deliver(self, jobs: list[_Job], heads: dict[str, int]) -> None:
        """Pass the results to the event loop."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no caller is waiting
                self._loop.call_soon_threadsafe(self._settle, jobs, heads)

    def _settle(self, jobs: list[_Job], heads: dict[str, int]) -> None:
        for job in jobs:
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        # Last, so that an appending caller resumes before its own followers, which then need not read the event back.
        self._watch.publish(heads)
