"""Nothing is left of a sandbox whose platform process was killed; what others run is never touched."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from handiwork.paths import runtime_dir
from handiwork.sandbox.endpoint import Endpoint, sweep_stale
from handiwork.sandbox.limits.cgroups import ControlGroups
from handiwork.sandbox.limits.limits import ResourceLimits
from tests.sandbox.helpers import Box, output

pytestmark = pytest.mark.slow

OWNER = """
import asyncio, sys
from pathlib import Path
from handiwork.sandbox.create import create
from handiwork.workspace.layers import SandboxPaths
from tests.sandbox.helpers import Blobs, run

async def main():
    kind, session, project, seconds = sys.argv[1:]
    sandbox = create(kind, SandboxPaths(Path(session), Path(project), Path(project)), Blobs().save)
    await sandbox.start()
    sleep = f"sleep {seconds}"
    await run(sandbox, f"setsid {sleep} & {sleep} & until [ $(pgrep -xfc '{sleep}') = 2 ]; do :; done")
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


SWEEPER = "from handiwork.sandbox.endpoint import sweep_stale; sweep_stale()"
CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
async def test_kill_9_of_the_owner_ends_processes_and_the_next_start_removes_the_socket(box: Box, kind: str) -> None:
    other = box.make()
    await other.start()
    session = box.session_dir.parent / "killed"
    session.mkdir(mode=0o700)
    before = set(runtime_dir().iterdir())
    seconds = str(70000 + os.getpid())
    arguments = ["-c", OWNER, kind, str(session), str(box.project), seconds]
    owner = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, cwd=CHECKOUT
    )
    try:
        assert owner.stdout is not None
        assert await owner.stdout.readline() == b"ready\n"
        inside = {pid: os.pidfd_open(pid) for pid in _descendants(owner.pid)}
        assert len(inside.keys() & _sleepers(seconds)) == 2
        left = set(runtime_dir().iterdir()) - before
        assert len(left) == 2
    finally:
        owner.send_signal(signal.SIGKILL)
        await owner.wait()
    await asyncio.gather(*map(_ended, inside.values()))

    assert {path.stem for path in left} <= set(sweep_stale())
    assert not any(path.exists() for path in left)
    assert await output(other, "echo alive") == "alive"


async def test_groups_that_outlive_a_sandbox_are_removed_at_the_next_start() -> None:
    endpoint = Endpoint()
    groups = ControlGroups(endpoint.groups, ResourceLimits())
    if not groups.joins:
        await endpoint.close()
        pytest.skip("only root, where there are control groups of version 1, makes any")
    folders = [Path(join).parent for join in groups.joins]
    lasting = await asyncio.create_subprocess_exec("sleep", "1000")
    for join in groups.joins:
        Path(join).write_text(str(lasting.pid))
    await endpoint.close()
    assert not endpoint.path.exists()
    assert endpoint.id not in sweep_stale()
    assert all(folder.exists() for folder in folders)
    lasting.kill()
    await lasting.wait()
    # Who comes next may be in another group itself.
    other = folders[0].parent / f"handiwork-other-{os.getpid()}"
    other.mkdir()
    try:
        sweeper = await asyncio.create_subprocess_exec(
            *("sh", "-c", 'echo $$ > "$1/cgroup.procs"; exec "$2" -c "$3"', "sh", other, sys.executable, SWEEPER),
            cwd=CHECKOUT,
        )
        assert await sweeper.wait() == 0
        assert not any(folder.exists() for folder in folders)
    finally:
        other.rmdir()


async def test_ten_at_once(box: Box) -> None:
    def one(number: int) -> Path:
        folder = box.session_dir.parent / str(number)
        folder.mkdir(mode=0o700)
        return folder

    boxes = [Box(one(number), box.project, box.blobs, box.stack).make() for number in range(10)]
    await asyncio.gather(*(sandbox.start() for sandbox in boxes))
    written = await asyncio.gather(
        *(output(sandbox, f"echo {number} > README; cat README") for number, sandbox in enumerate(boxes))
    )
    assert written == [str(number) for number in range(10)]
    await asyncio.gather(*(sandbox.close() for sandbox in boxes))


def _descendants(pid: int) -> list[int]:
    children = [
        int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
    ]
    return children + [found for child in children for found in _descendants(child)]


def _sleepers(seconds: str) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


async def _ended(pidfd: int) -> None:
    """Return when the process is gone."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pidfd, done.set)
    await done.wait()
    loop.remove_reader(pidfd)
    os.close(pidfd)
