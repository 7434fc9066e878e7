"""The collection of snapshots while other processes change the list of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handiwork.events.record import SnapshotEvent
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store
from handiwork.session.storage.gc import collect
from handiwork.workspace.session_files import snapshot_store

PAGE = 50


class Raced(Store):
    """A store from which another process deletes a session as soon as its sessions have been read."""

    async def sessions(self, *args: Any, **options: Any) -> list[SessionInfo]:
        page = await super().sessions(*args, **options)
        if len(page) >= PAGE:
            async with Store.open(self.folder) as other:
                await other.delete(page[PAGE - 1].id)
        return page


async def test_a_session_deleted_meanwhile_costs_no_older_session_its_snapshots(tmp_path: Path) -> None:
    async with Raced.open(tmp_path) as store:
        objects = snapshot_store(tmp_path)
        file = objects.put_bytes(b"precious")
        tree = objects.put_tree({"file": file})
        await store.create(agent="a", model="m", events=[SnapshotEvent(tree=tree, size=8)])
        for _ in range(PAGE + 5):
            await store.create(agent="a", model="m")
        await collect(store, tmp_path, 1 << 30, grace=0, unrecorded=-1)
        assert tree in objects.reachable({tree})
        assert objects.read(file) == b"precious"
