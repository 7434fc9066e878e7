"""Removes snapshots: what no session needs, and the oldest where all of them take more room than they may."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from handiwork.events.record import SnapshotEvent
from handiwork.log.store import Store
from handiwork.sandbox.objects import GRACE, Objects
from handiwork.sandbox.safe_open import WorkspaceError
from handiwork.sandbox.workspace import Workspace
from handiwork.session.keeping import GIGABYTE, objects_of, session_dir
from handiwork.session.watch import Status, Watch


@dataclass(frozen=True)
class _Session:
    """The trees that a session's snapshots are, the bytes they added, and whether they may go to make room."""

    trees: frozenset[str]
    size: int
    rests: bool


async def collect(store: Store, data: Path, budget: int, grace: float = GRACE) -> tuple[int, int]:
    """Remove what no session's snapshots need, and of sessions that rest, the oldest first, what is over ``budget``.

    Returns the bytes that were freed and that are left. A fork keeps what it began with, and everybody what was used
    in the last ``grace`` seconds.
    """
    sessions: list[_Session] = []
    forks: set[str] = set()
    taken = await store.events_of(SnapshotEvent)
    known: set[str] = set()
    before: str | None = None
    while page := await store.sessions(before=before):
        for info in page:
            known.add(info.id)
            kept = taken.get(info.id, [])
            sessions.append(
                _Session(
                    trees=frozenset(event.tree for event in kept) - {""},
                    size=sum(event.size for event in kept),
                    rests=info.state != "running" and datetime.now(UTC) - info.updated > timedelta(seconds=grace),
                )
            )
            folder = session_dir(data, info.id)
            if (folder / "workspace.json").exists():
                forks |= {Workspace.load(folder).tree} - {""}
        before = page[-1].id
    await asyncio.to_thread(_remove_unborn, data / "sessions", known, grace)
    return await asyncio.to_thread(_sweep, objects_of(data), sessions, forks, budget, grace)


def _remove_unborn(folder: Path, known: Collection[str], grace: float) -> None:
    """Remove the folders of forks whose makers were killed before the log had them: they have nothing in them yet."""
    for place in folder.glob("*/workspace.json"):
        unborn = place.parent.name not in known and [*place.parent.iterdir()] == [place]
        if unborn and place.stat().st_mtime < time.time() - grace:
            shutil.rmtree(place.parent)


async def make_room(store: Store, data: Path, gigabytes: int, watch: Watch, grace: float = GRACE) -> None:
    """Collect if all snapshots together take more than they may; what prevents it is told to ``watch``."""
    objects, budget = objects_of(data), gigabytes * GIGABYTE
    try:
        if budget and objects.folder.is_dir() and await asyncio.to_thread(objects.account, 0) > budget:
            await collect(store, data, budget, grace)
    except (WorkspaceError, OSError) as error:
        watch(Status(f"no room could be made for snapshots: {error}"))


def _sweep(objects: Objects, sessions: list[_Session], forks: set[str], budget: int, grace: float) -> tuple[int, int]:
    freed = 0
    while True:
        trees = forks.union(*(one.trees for one in sessions))
        freed += objects.sweep(objects.reachable(trees), forks, grace)
        over = (left := objects.recount()) - budget
        resting = [one for one in sessions if one.rests]  # the newest first
        if over <= 0 or not resting:
            return freed, left
        while over > 0 and resting:
            oldest = resting.pop()
            over -= oldest.size
            sessions.remove(oldest)
