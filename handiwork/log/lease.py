"""Leases: one owner for a running session."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from handiwork.log.errors import LeaseHeld, LogError
from handiwork.log.schema import leases, sessions
from handiwork.log.transaction import Transaction
from handiwork.log.worker import Worker
from handiwork.process import Process

BEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 30.0


def holder(database: Transaction | Connection, session: str, now: float) -> Process | None:
    """Return the process that runs the session; None if no process does.

    A process of this machine runs it until it dies; a process that is not visible from here, until its heartbeat is 30
    seconds from the time ``now``. A heartbeat in the future was written before the clock was set back.
    """
    row = database.execute(select(leases).where(leases.c.session == session)).one_or_none()
    return _process(row, now) if row is not None else None


def interrupted(connection: Connection, now: float) -> list[str]:
    """Return the ids of the sessions that are running, but whose process has ended by the time ``now``."""
    running = select(sessions.c.id, leases).outerjoin(leases, leases.c.session == sessions.c.id)
    rows = connection.execute(running.where(sessions.c.state == "running")).all()
    return [row.id for row in rows if row.session is None or _process(row, now) is None]


def _process(row: Row[Any], now: float) -> Process | None:
    process = Process(row.host, row.pid, row.started)
    alive = process.alive()
    if alive is None:
        alive = abs(now - row.heartbeat) < TIMEOUT_SECONDS
    return process if alive else None


def _acquire(transaction: Transaction, session: str, token: str) -> None:
    transaction.head(session)
    if (other := holder(transaction, session, transaction.now)) is not None:
        raise LeaseHeld(session, other.host, other.pid)
    this = Process.this()
    transaction.execute(delete(leases).where(leases.c.session == session))
    transaction.execute(
        insert(leases).values(
            session=session,
            token=token,
            host=this.host,
            pid=this.pid,
            started=this.started,
            heartbeat=transaction.now,
        )
    )


@asynccontextmanager
async def hold_lease(worker: Worker, session: str) -> AsyncGenerator[str]:
    """Hold the session's lease and yield its token. Raises LeaseHeld, SessionMissing."""
    token, over = secrets.token_hex(16), False
    mine = leases.c.token == token

    def release(transaction: Transaction) -> None:
        transaction.execute(delete(leases).where(mine))

    def renew(transaction: Transaction) -> None:
        transaction.execute(update(leases).where(mine).values(heartbeat=transaction.now))

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            with contextlib.suppress(LogError):  # a temporarily full disk does not cost the lease
                await worker.write(release if over else renew)
                if over:
                    return

    try:
        await worker.write(lambda transaction: _acquire(transaction, session, token))
    except asyncio.CancelledError:
        with contextlib.suppress(LogError):  # the lease may have been taken despite the cancellation
            await worker.write(release)
        raise
    beating = asyncio.create_task(beat())
    try:
        yield token
    finally:
        over = True
        # If the disk is full, the next beats try again: a server lives on, and could not run the session.
        with contextlib.suppress(LogError):
            await worker.write(release)
            beating.cancel()
