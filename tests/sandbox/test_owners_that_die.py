"""Nothing is left of a sandbox whose platform process was killed; what others run is never touched."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from boxes import Box, output

from handiwork.paths import runtime_dir
from handiwork.sandbox.runtime import sweep_stale

OWNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from boxes import Blobs, run
from handiwork.sandbox.bubblewrap import BubblewrapSandbox

async def main():
    sandbox = BubblewrapSandbox(Path(sys.argv[1]), Path(sys.argv[2]), Blobs().save, Path(sys.argv[2]))
    await sandbox.start()
    command = f"setsid sleep {sys.argv[4]} & sleep {sys.argv[4]} & until [ $(pgrep -c sleep) = 2 ]; do :; done"
    await run(sandbox, command)
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


async def test_kill_9_of_the_owner_ends_processes_and_the_next_start_removes_the_socket(box: Box) -> None:
    other = box.make()
    await other.start()
    session = box.session_dir.parent / "killed"
    session.mkdir(mode=0o700)
    before = set(runtime_dir().iterdir())
    seconds = str(70000 + os.getpid())
    arguments = ["-c", OWNER, str(session), str(box.project), str(Path(__file__).parent), seconds]
    owner = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert owner.stdout is not None
        assert await owner.stdout.readline() == b"ready\n"
        inside = [os.pidfd_open(pid) for pid in _sleepers(seconds)]
        assert len(inside) == 2
        left = set(runtime_dir().iterdir()) - before
        assert len(left) == 2
    finally:
        owner.send_signal(signal.SIGKILL)
        await owner.wait()
    await asyncio.gather(*map(_ended, inside))

    assert {path.stem for path in left} <= set(sweep_stale())
    assert not any(path.exists() for path in left)
    assert await output(other, "echo alive") == "alive"


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
