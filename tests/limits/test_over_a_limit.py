"""What takes more than it may is stopped, the observation says so, and the session's next command works."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import pytest

from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.host import HostSandbox
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.sandbox.limits.processes import family, resident
from tests.sandbox.helpers import PYTHON, Box, output, run

pytestmark = pytest.mark.slow

MIB = 1 << 20
SMALL = ResourceLimits(memory=300 * MIB, processes=150, file_size=20 * MIB, disk=64 * MIB)
MEMORY_BOMB = "b = []\nwhile True: b.append(bytearray(b'x' * 2**20))"
FORK_BOMB = "bomb() { bomb | bomb & }; bomb"
COUNT_SHELLS = "ps -C bash --no-headers | wc -l"


@pytest.fixture
async def sandbox(box: Box) -> AsyncIterator[Sandbox]:
    """One with small limits; whatever is done in it, another program of this machine and the shell live on."""
    before = used_by_this_program()
    made = box.make(limits=SMALL)
    await made.start()
    await run(made, "export kept=here")
    neighbour = await asyncio.create_subprocess_exec("sleep", "1000")
    yield made
    assert await output(made, "echo $kept") == "here"
    assert neighbour.returncode is None
    neighbour.kill()
    await neighbour.wait()
    assert used_by_this_program() < before + 200 * MIB


def used_by_this_program() -> int:
    return sum(resident(process) for process in family(os.getpid())[1:])


async def test_the_first_command_of_a_sandbox_fills_the_disk_at_once(box: Box) -> None:
    sandbox = box.make(limits=SMALL)
    await sandbox.start()
    burst = await run(sandbox, "for i in 1 2 3 4 5 6; do head -c 16M /dev/zero > $i; done; sleep 10")
    assert burst.limit == "disk"


async def test_memory(sandbox: Sandbox) -> None:
    bomb = await run(sandbox, f'{PYTHON} -c "{MEMORY_BOMB}"')
    assert (bomb.exit_code, bomb.limit) == (137, "memory")
    assert bomb.content.endswith("[stopped: the sandbox's memory limit of 300 MiB was reached]\n")


async def test_memory_of_many_processes_together(sandbox: Sandbox) -> None:
    each = "import os, time; x = bytearray(b'x' * 50 * 2**20); os.write(1, b'.'); time.sleep(30)"
    bomb = await run(sandbox, f'(for i in 1 2 3 4 5 6 7 8; do {PYTHON} -c "{each}" & done; wait -n; kill $(jobs -p))')
    assert bomb.limit == "memory"


async def test_the_shell_comes_back_when_it_is_what_takes_the_memory(sandbox: Sandbox) -> None:
    bomb = await run(sandbox, "x=$(yes)")
    assert bomb.limit == "memory"


def is_told(observation: CmdOutputObservation) -> bool:
    return "processes and threads was reached" in observation.content + observation.tail


async def run_fork_bomb(sandbox: Sandbox) -> list[CmdOutputObservation]:
    """Run it, and further commands until one tells of the limit and the bomb is over."""
    before = int(await output(sandbox, COUNT_SHELLS))
    # It goes on after its own command is over, so that a later one meets it, on a busy machine much later: one shell
    # that waits before it forks again is enough.
    told = [await run(sandbox, FORK_BOMB)]
    while not (any(map(is_told, told)) and told[-1].content.strip() in map(str, range(before + 1))):
        told.append(await run(sandbox, f"sleep 0.2; {COUNT_SHELLS}"))
    return told


async def test_a_fork_bomb(sandbox: Sandbox) -> None:
    told = await run_fork_bomb(sandbox)
    # On a busy machine the bomb can last so long that bash gives up forking and exits; the observation then says so.
    if any(observation.status == "exited" for observation in told):
        await run(sandbox, "export kept=here")


async def test_a_command_that_starts_too_many_processes(sandbox: Sandbox) -> None:
    bomb = await run(sandbox, f"{PYTHON} -c 'import os, time; [os.fork() or time.sleep(60) for _ in range(500)]'")
    assert bomb.limit == "processes"
    assert "limit of 150 processes and threads was reached" in bomb.content


@pytest.mark.parametrize("command", ["head -c 1G /dev/zero > large", "truncate -s 1G large"])
async def test_one_large_file(sandbox: Sandbox, command: str) -> None:
    large = await run(sandbox, command)
    assert (large.exit_code, large.limit) == (153, "file_size")
    assert "the sandbox's limit of 20 MiB for one file was reached" in large.content
    assert int(await output(sandbox, "stat -c %s large")) <= SMALL.file_size


async def test_a_full_disk_which_can_be_cleared(sandbox: Sandbox) -> None:
    full = await run(sandbox, "i=0; while :; do head -c 1M /dev/zero > file$i; i=$((i+1)); done")
    assert (full.status, full.limit) == ("done", "disk")
    assert "the sandbox's disk limit of 64 MiB was reached" in full.content
    assert (await run(sandbox, "cat file* > /dev/null; echo a little > note")).limit == ""
    again = await run(sandbox, "mkdir more; i=0; while :; do head -c 1M /dev/zero > more/$i; i=$((i+1)); done")
    assert again.limit == "disk"
    await output(sandbox, "rm -r file* more")
    assert (await run(sandbox, "head -c 20M /dev/zero > file; sleep 0.5; rm file")).limit == ""


async def test_very_many_files(sandbox: Sandbox) -> None:
    many = await run(sandbox, "mkdir many; cd many; seq 200000 | xargs touch")
    assert many.limit == "disk"
    await output(sandbox, "cd ..; rm -r many")


async def test_writing_in_the_background_is_told_with_the_next_command(sandbox: Sandbox) -> None:
    await run(sandbox, "(i=0; while :; do head -c 1M /dev/zero > file$i; i=$((i+1)); done) & ")
    while not (told := (await run(sandbox, "sleep 0.1")).content):
        pass
    assert "disk limit" in told
    await output(sandbox, "rm file*")


async def test_output_without_end(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    endless = await sandbox.execute(CmdRunAction(command="head -c 80M /dev/zero | tr '\\0' y"))
    assert endless.tail.endswith("[of these 83886080 bytes only the first 67108864 and this end were kept]")
    assert endless.blob is not None
    assert box.blobs.kept[endless.blob] == b"y" * (64 * MIB)
    assert not list((box.session_dir / "tmp").rglob("handiwork-spool-*/*"))


async def test_time(sandbox: Sandbox) -> None:
    late = await sandbox.execute(CmdRunAction(command="sleep 60", timeout=0.3))
    assert isinstance(late, CmdOutputObservation)
    assert (late.status, late.limit) == ("timeout", "time")


async def test_memory_and_processes_without_a_sandbox(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(box.session_dir))  # nobody's own .bashrc
    sandbox = HostSandbox(box.project, box.blobs.save, SMALL)
    await sandbox.start()
    try:
        assert (await run(sandbox, f'{sys.executable} -c "{MEMORY_BOMB}"')).limit == "memory"
        forks = "import os, time; [os.fork() or time.sleep(60) for _ in range(500)]"
        assert (await run(sandbox, f"{sys.executable} -c '{forks}'")).limit == "processes"
        # Beside it the shell may tell of the job that was killed.
        assert "alive" in (await output(sandbox, "echo alive")).splitlines()
    finally:
        await sandbox.close()
