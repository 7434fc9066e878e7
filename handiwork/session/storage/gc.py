"""Remove snapshots, blobs and folders that no session needs, and the oldest snapshots above the budget."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.events.record import SnapshotEvent
from handiwork.log.errors import LogError, SessionMissing
from handiwork.log.store import Store
from handiwork.paths import locked
from handiwork.session.steps.live import Observer, Status
from handiwork.session.storage.layout import UNLISTED, session_dir, snapshots_alone
from handiwork.tasks import run_to_end
from handiwork.workspace.copy import Workspace
from handiwork.workspace.files.temp_dir import remove_abandoned
from handiwork.workspace.in_place import recover
from handiwork.workspace.session_files import GIGABYTE, snapshot_store
from handiwork.workspace.snapshots.object_store import GRACE, Objects, remove_tree

_SWEEPER = ThreadPoolExecutor(1)
"""Not the shared pool: sessions that wait for the snapshots may have all of its threads."""


@dataclass(frozen=True)
class _Session:
    """The trees of a session's snapshots, their size in bytes, and whether the session is at rest."""

    trees: frozenset[str]
    size: int
    rests: bool


@dataclass(frozen=True)
class Cleaned:
    """The bytes freed, and the size of the ``remaining`` snapshots."""

    snapshots: int
    blobs: int
    sessions: int
    remaining: int


async def clean(store: Store, data: Path, budget: int) -> Cleaned:
    """Remove the folders, blobs and snapshots that no session of the log needs, and snapshots above ``budget`` bytes.

    Other processes may run sessions at the same time. Leftovers of a killed process are removed too, also in
    directories of in-place sessions. Raises SandboxError if that fails, and WorkspaceError at the end if killed
    containers have left files of root in a folder.
    """
    await asyncio.to_thread(recover, data)
    await asyncio.to_thread(remove_abandoned)
    folders = await asyncio.to_thread(lambda: [mark.parent for mark in (data / "sessions").glob(f"*/{UNLISTED}")])
    freed, refused = 0, list[str]()
    for folder in folders:
        try:
            freed += await _remove_unlisted(store, folder)
        except PermissionError:
            refused.append(shlex.quote(str(folder)))
    blobs = await store.remove_blobs()
    with snapshots_alone(data) as alone:
        # No process is about to record a snapshot that the log does not have.
        snapshots, remaining = await collect(store, data, budget, unrecorded=-1 if alone else GRACE)
    if refused:
        names = " ".join(refused)
        raise WorkspaceError(
            f"root owns files of sessions whose container was killed: remove them with: sudo rm -r {names}"
        )
    return Cleaned(snapshots, blobs, freed, remaining)


async def delete_session(store: Store, data: Path, session_id: str) -> None:
    """Delete a session and the data that only it needs. Raises SessionMissing, SessionShared, LeaseHeld."""
    folder = session_dir(data, session_id)
    mark = folder / UNLISTED
    if folder.is_dir():
        mark.touch(mode=0o600)  # first: if this process is killed before the end, `gc` continues
    try:
        await store.delete(session_id)
    except LogError:
        mark.unlink(missing_ok=True)
        raise
    if folder.is_dir():
        await asyncio.to_thread(remove_tree, folder)
    if snapshot_store(data).folder.is_dir():
        with snapshots_alone(data) as alone:
            if alone:
                await collect(store, data, sys.maxsize, unrecorded=-1)


async def _remove_unlisted(store: Store, folder: Path) -> int:
    """Remove the folder of a session that is not in the log, unless it is being created; return the bytes freed."""
    try:
        with locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            try:
                await store.log(folder.name)
            except SessionMissing:
                size = await asyncio.to_thread(_size, folder)
                await asyncio.to_thread(remove_tree, folder)
                return size
            (folder / UNLISTED).unlink(missing_ok=True)
    except (BlockingIOError, FileNotFoundError):
        pass  # another process creates it, or has removed it
    return 0


def _size(folder: Path) -> int:
    """Return the bytes of all files below the folder, without files shared with the snapshot store."""
    stats = (os.lstat(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names)
    return sum(stat.st_size for stat in stats if stat.st_nlink == 1)


async def collect(
    store: Store, data: Path, budget: int, grace: float = GRACE, unrecorded: float | None = None
) -> tuple[int, int]:
    """Remove objects that no snapshot needs, then the oldest snapshots of resting sessions until ``budget`` is met.

    Returns the bytes freed and left. A fork keeps its first snapshot. Objects younger than ``unrecorded`` seconds, by
    default ``grace``, stay; a session is at rest after ``grace`` seconds.
    """
    min_age = grace if unrecorded is None else unrecorded
    sessions: list[_Session] = []
    forks: set[str] = set()
    snapshots = await store.events_of(SnapshotEvent)
    for info in await store.sessions():
        records = snapshots.get(info.id, [])
        sessions.append(
            _Session(
                trees=frozenset(event.tree for event in records) - {""},
                size=sum(event.size for event in records),
                rests=info.state != "running" and abs(datetime.now(UTC) - info.updated) > timedelta(seconds=grace),
            )
        )
        folder = session_dir(data, info.id)
        if (folder / "workspace.json").exists():
            forks |= {_origin(folder, records)} - {""}
    loop = asyncio.get_running_loop()
    sweep = loop.run_in_executor(_SWEEPER, _sweep, snapshot_store(data), sessions, forks, budget, min_age)
    return await run_to_end(sweep)  # the lock of a cancelled caller must last as long as the sweep


def _origin(folder: Path, snapshots: list[SnapshotEvent]) -> str:
    """Return the first tree of a session; if its file is damaged, the first one in its log."""
    try:
        return Workspace.load(folder).tree
    except WorkspaceError:
        return snapshots[0].tree if snapshots else ""


async def make_room(store: Store, data: Path, gigabytes: int, watch: Observer, grace: float = GRACE) -> None:
    """Collect if the snapshots together exceed their budget; ``watch`` gets the reason of a failure."""
    objects, budget = snapshot_store(data), gigabytes * GIGABYTE
    try:
        if budget and objects.folder.is_dir() and await asyncio.to_thread(objects.account, 0) > budget:
            await collect(store, data, budget, grace)
    except (WorkspaceError, OSError) as error:
        watch(Status(f"cannot make room for snapshots: {error}"))


def _sweep(objects: Objects, sessions: list[_Session], forks: set[str], budget: int, grace: float) -> tuple[int, int]:
    freed = 0
    while True:
        trees = forks.union(*(session.trees for session in sessions))
        freed += objects.sweep(objects.reachable(trees), forks, grace)
        excess = (size := objects.recount()) - budget
        resting = [session for session in sessions if session.rests]  # the newest first
        if excess <= 0 or not resting:
            return freed, size
        while excess > 0 and resting:
            oldest = resting.pop()
            excess -= oldest.size
            sessions.remove(oldest)
