"""Snapshot and fork of a large workspace beside ``cp -a`` of it: ``python -m perf.snapshots [ROUNDS]``.

In a workspace of 20,000 files a command changes 10, 1,000 or all of them. Timed is what the session then waits for, the
snapshot, and what a fork takes from there until its sandbox could be started; beside it the copy of the whole, in turn.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from handiwork.events.action import CmdRunAction
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.workspace.copy import make_copy
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.snapshots.object_store import Objects, remove_tree
from handiwork.workspace.snapshots.store import Snapshots

FILES = 20_000
PER_FOLDER = 100
CHANGED = {10: 1 / 20, 1000: 1 / 10, FILES: 1 / 2}
"""How many files a step changes, and the most that snapshot and fork may take of the time of a copy of all."""


async def no_blobs(_: AsyncIterator[bytes]) -> str:
    """Refuse large outputs: there are none."""
    raise AssertionError("an output was large")


def make_project(folder: Path) -> None:
    """Write the files: some lines of text each."""
    for number in range(FILES):
        path = folder / f"part{number // PER_FOLDER}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"print({number})\n" * 40)


async def measured(folder: Path, project: Path, changed: int) -> tuple[float, float, float]:
    """Return the seconds of the snapshot, the fork, and the copy."""
    session = folder / "session"
    session.mkdir(parents=True, mode=0o700)
    workspace = make_copy(project, session)
    objects = Objects(folder / "snapshots")
    places = SandboxPaths(session, project, workspace.base)
    snapshots = Snapshots(objects, places.written())
    sandbox = BubblewrapSandbox(places, no_blobs, snapshots=snapshots)
    try:
        await sandbox.start()
        await sandbox.snapshot()
        change = f"ls -d part*/* | head -n {changed} | xargs sed -i 's/print/write/'"
        await sandbox.execute(CmdRunAction(command=change, timeout=600))
        os.sync()
        began = time.perf_counter()
        taken = await sandbox.snapshot()
        kept = time.perf_counter()
        assert taken is not None
        assert taken.changed >= changed
        layer = objects.layer(taken.tree)
        forked = time.perf_counter()
        assert sum(one.is_file() for one in (layer / "workspace").rglob("*")) == changed
    finally:
        await sandbox.close()
    os.sync()
    copying = time.perf_counter()
    await asyncio.to_thread(subprocess.run, ["cp", "-a", str(project), str(folder / "copy")], check=True)
    return kept - began, forked - kept, time.perf_counter() - copying


def main(rounds: int) -> None:
    """Print for each number of changed files the medians, their ratio and the load of the machine."""
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as name:
        project = Path(name, "project")
        make_project(project)
        # Nothing is removed before the end: ext4 is slow to make files where others were removed a moment ago.
        for changed, most in CHANGED.items():
            times: list[tuple[float, float, float]] = []
            for number in range(rounds):
                folder = Path(name, f"{changed}-{number}")
                times.append(asyncio.run(measured(folder, project, changed)))
            snapshot, fork, copy = (statistics.median(one) for one in zip(*times, strict=True))
            ratio = statistics.median((kept + forked) / copied for kept, forked, copied in times)
            print(
                f"{changed:6} changed: snapshot {1000 * snapshot:7.1f} ms, fork {1000 * fork:7.1f} ms, "
                f"cp -a {1000 * copy:7.1f} ms: {ratio:.3f} of it (at most {most:.3f}); load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        for folder in Path(name).iterdir():
            remove_tree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
