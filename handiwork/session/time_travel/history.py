"""The earlier states of a session's files, from its snapshots, and the base's version of a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path, PurePosixPath

from handiwork.errors import WorkspaceError
from handiwork.events.base import Event, Observation
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import SessionStarted, SnapshotEvent
from handiwork.log.eventlog import EventLog
from handiwork.sandbox.base import Sandbox
from handiwork.session.config import SessionError, config_of
from handiwork.session.storage.layout import session_dir, snapshots_in_use
from handiwork.workspace.changes import Change, Side
from handiwork.workspace.files.names import quoted
from handiwork.workspace.overlay_view import OverlayView
from handiwork.workspace.session_files import OverlayFiles

_PIECE = 1 << 16


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
    for at in (first, last):
        if at is not None and not 0 <= at <= len(events):
            raise SessionError(f"session {log.id} has no event {at}: its events are 1 to {len(events)}")
    before, after = (tree_at(events[:at], log.id) for at in (first or 0, len(events) if last is None else last))

    def changes() -> list[Change]:
        with snapshots_in_use(data):  # waits for a collection, which may need this event loop to end
            return history.changes_between(before, after)

    return await asyncio.to_thread(changes)


def tree_at(events: Sequence[Event], session: str) -> str:
    """Return the tree of the last snapshot; "" if nothing has changed since the beginning. Raises WorkspaceError."""
    ran = {event.id for event in events if getattr(event, "runnable", False)}
    started = next((event for event in reversed(events) if isinstance(event, SessionStarted)), None)
    off, acted = started is not None and started.settings.get("snapshots") == 0, False
    unknown = WorkspaceError(f"session {session} keeps no snapshots, so its earlier files are not known")
    for event in reversed(events):
        if isinstance(event, SnapshotEvent):
            if not event.tree:
                raise WorkspaceError(f"the files could not be kept at event {event.id}: {event.problem}")
            if off and acted:  # a fork has a snapshot of its beginning even then
                raise unknown
            return event.tree
        is_forked = isinstance(event, ErrorObservation) and event.error_id == "forked"
        acted = acted or (isinstance(event, Observation) and event.cause in ran and not is_forked)
    if acted:
        raise unknown
    return ""


async def revert_file(sandbox: Sandbox, change: Change) -> None:
    """Give a changed path its version in the base again, or remove a new one. Raises WorkspaceError, SandboxError."""
    path, old = f"./{change.path}", change.old
    if change.new is not None:
        await _run(sandbox, change, "rm", "-f", "--", path)
    if old is None:
        return
    if old.is_link:
        target = os.fsdecode(await asyncio.to_thread(old.read))
        await _run(sandbox, change, "mkdir", "-p", "--", str(PurePosixPath(path).parent))
        await _run(sandbox, change, "ln", "-sT", "--", target, path)
        return
    try:
        await sandbox.upload(change.path, _pieces(old))
    except OSError as error:
        raise WorkspaceError(f"{quoted(change.path)} cannot be written: {error}") from None
    if old.git_mode == "100755":
        await _run(sandbox, change, "chmod", "+x", "--", path)


async def _run(sandbox: Sandbox, change: Change, *command: str) -> None:
    async with sandbox.pipe(command) as program:
        async for _ in program.lines():
            pass
    if program.exit_code != 0:
        raise WorkspaceError(f"{quoted(change.path)} cannot be taken back: {program.errors.strip()}")


async def _pieces(side: Side) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(side.open) as stream:
        while piece := await asyncio.to_thread(stream.read, _PIECE):
            yield piece
