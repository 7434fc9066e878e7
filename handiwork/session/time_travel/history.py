"""The earlier states of a session's files, from its snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.events.base import Event, Observation
from handiwork.events.record import SnapshotEvent
from handiwork.log.eventlog import EventLog
from handiwork.session.config import SessionError, config_of
from handiwork.session.storage.layout import session_dir, snapshots_in_use
from handiwork.workspace.changes import Change
from handiwork.workspace.overlay_view import OverlayView
from handiwork.workspace.session_files import OverlayFiles


async def history_of(data: Path, log: EventLog) -> OverlayFiles:
    """Return a session's files, whose earlier states can be restored. Raises SessionError if they cannot."""
    history = (await config_of(log)).files(session_dir(data, log.id)).history
    if history is None:
        raise SessionError(f"session {log.id} does not work on a copy in a sandbox, so its earlier files are not kept")
    return history


async def files(data: Path, log: EventLog, at: int | None = None) -> OverlayView:
    """Return the current files, or the files after event ``at``, without a sandbox.

    Raises WorkspaceError, and SessionError if the session keeps no earlier files.
    """
    if at is None:
        return await asyncio.to_thread((await config_of(log)).files(session_dir(data, log.id)).view)
    history = await history_of(data, log)
    tree = tree_at((await log.read(limit=at)) if at else [], log.id)
    return await asyncio.to_thread(history.view, tree)


async def changes_from_to(data: Path, log: EventLog, first: int | None, last: int | None) -> list[Change]:
    """Return the changes between the files after events ``first`` and ``last``; None means the start and the end.

    Raises SessionError, WorkspaceError.
    """
    history = await history_of(data, log)
    events = await log.read()
    before, after = (tree_at(events[:at], log.id) for at in (first or 0, len(events) if last is None else last))
    with snapshots_in_use(data):
        return await asyncio.to_thread(history.changes_between, before, after)


def tree_at(events: Sequence[Event], session: str) -> str:
    """Return the tree of the last snapshot; "" if nothing has changed since the beginning. Raises WorkspaceError."""
    ran = {event.id for event in events if getattr(event, "runnable", False)}
    for event in reversed(events):
        if isinstance(event, SnapshotEvent):
            if not event.tree:
                raise WorkspaceError(f"the files could not be kept at event {event.id}: {event.problem}")
            return event.tree
    if any(isinstance(event, Observation) and event.cause in ran for event in events):
        raise WorkspaceError(f"session {session} keeps no snapshots, so its earlier files are not known")
    return ""
