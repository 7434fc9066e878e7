"""kill -9 of the platform at any moment of a session with snapshots: nothing is left of it, nothing is damaged."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import Limits, SnapshotEvent
from handiwork.log.eventlog import EventLog
from handiwork.paths import runtime_dir
from handiwork.sandbox.objects import Objects
from handiwork.sandbox.runtime import sweep_stale
from handiwork.session.assemble import Setup, create, reopen
from handiwork.session.collecting import collect
from handiwork.session.keeping import objects_of
from tests.sandbox.conftest import namespaces_allowed
from tests.snapshots import owners
from tests.snapshots.workbench import Workbench

pytestmark = pytest.mark.skipif(not namespaces_allowed(), reason="this machine allows no user namespaces")


def mounts(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]


@pytest.mark.parametrize("kills", [pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
async def test_killed_anywhere_nothing_is_left_and_the_session_goes_on(bench: Workbench, kills: int) -> None:
    setup = Setup(
        agent=owners.AGENT,
        model=bench.setup().model,
        workspace=str(bench.project),
        limits=Limits(iterations=10_000),
    )
    opened = await create(bench.store, bench.data, setup, lambda _: None, "a task")
    await opened.run("begin")
    await opened.close()
    seed = random.randrange(10**9)
    command = [sys.executable, owners.__file__, bench.data, opened.id, str(kills), str(seed)]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert mounts(bench.folder) == []

    again = await reopen(bench.store, bench.data, opened.id, lambda _: None)
    try:
        state = await again.run("go on")
        assert state.agent_state == "finished", state.change
    finally:
        await again.close()
    sweep_stale()
    assert list(runtime_dir().iterdir()) == []  # a record goes only after its control groups
    await collect(bench.store, bench.data, 1 << 40, grace=-1)
    assert list(objects_of(bench.data).folder.rglob("part-*")) == []
    checked = await check_snapshots(again.log, objects_of(bench.data))
    assert checked > 5, f"seed {seed}"
    for info in await bench.store.sessions(limit=1000):
        if info.parent is not None:
            child = await reopen(bench.store, bench.data, info.id, lambda _: None)
            await child.close()


async def check_snapshots(log: EventLog, objects: Objects) -> int:
    """See that every snapshot has the files of its command, which printed them; return how many there are."""
    events = await log.read()
    pairs = [(one, after) for one, after in pairwise(events) if isinstance(one, SnapshotEvent)]
    for snapshot, observation in pairs:
        assert isinstance(snapshot, SnapshotEvent)
        assert snapshot.tree, snapshot.problem
        workspace = objects.layer(snapshot.tree) / "workspace"
        assert _printed(observation) in ("".join((workspace / name).read_text() for name in "abc"), None)
    return len(pairs)


def _printed(event: Event) -> str | None:
    return event.text if isinstance(event, CmdOutputObservation) and event.exit_code == 0 else None
