"""Nothing is left of a container whose platform process was killed; what others run is never touched."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.process import Process
from handiwork.sandbox.docker import cli as docker_cli
from scripts.harness.images import image
from tests.sandbox.helpers import Box, output, run

pytestmark = pytest.mark.usefixtures("docker_daemon")

OWNER = """
import asyncio, sys
from pathlib import Path
from handiwork.sandbox.create import create
from handiwork.workspace.layers import SandboxPaths
from tests.sandbox.helpers import Blobs, run

async def main():
    image, session, project = sys.argv[1:]
    sandbox = create("docker", SandboxPaths(Path(session), Path(project), Path(project)), Blobs().save, image=image)
    await sandbox.start()
    await run(sandbox, "setsid sleep 1000 & sleep 1000 & true")
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""
CHECKOUT = Path(__file__).parents[2]


def docker(*arguments: str) -> list[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout.split()


def containers() -> set[str]:
    return set(docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={docker_cli.OWNER}"))


def volumes() -> set[str]:
    return set(docker("volume", "ls", "--quiet"))


@pytest.fixture
def other(box: Box) -> Box:
    box.image = image("bookworm")
    return box


async def test_kill_9_of_the_owner_ends_and_removes_its_container(other: Box) -> None:
    living = other.make()
    await living.start()
    before, kept = containers(), volumes()
    session = other.session_dir.parent / "killed"
    session.mkdir(mode=0o700)
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, image("bookworm"), str(session), str(other.project)),
        stdout=asyncio.subprocess.PIPE,
        cwd=CHECKOUT,
    )
    try:
        assert owner.stdout is not None
        assert await owner.stdout.readline() == b"ready\n"
        assert len(containers() - before) == 1
    finally:
        owner.send_signal(signal.SIGKILL)
        await owner.wait()
    while containers() != before or volumes() != kept:
        await asyncio.sleep(0.1)
    assert await output(living, "echo alive") == "alive"


async def test_a_start_removes_what_a_dead_process_left_and_nothing_of_others(other: Box) -> None:
    living = other.make()
    await living.start()
    this = Process.this()
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    dead = f"{this.host} {ended.stdout.strip()} {this.started.rpartition(':')[0]}:1"
    elsewhere = f"elsewhere {this.pid} other-boot:pid:[1]:1"
    left, foreign = (
        docker("create", f"--label={docker_cli.OWNER}={owner}", "--volume=/data", image("bookworm"), "true")[0]
        for owner in (dead, elsewhere)
    )
    try:
        assert left in containers()
        assert await docker_cli.sweep() == [left]
        assert left not in containers()
        assert foreign in containers()
        assert await output(living, "echo alive") == "alive"
    finally:
        docker("rm", "--force", "--volumes", foreign)


async def test_a_container_that_is_lost_is_said_and_is_started_again(other: Box) -> None:
    sandbox = other.make()
    before = containers()
    await sandbox.start()
    (mine,) = containers() - before
    await run(sandbox, "echo kept > kept; echo home > ~/kept")
    running = asyncio.create_task(run(sandbox, "sleep 1000"))
    docker("kill", mine)
    with pytest.raises(Exception, match="lost"):
        await running
    await sandbox.start()
    assert await output(sandbox, "cat kept ~/kept") == "kept\nhome"
    await sandbox.close()
    assert containers() == before


async def test_a_start_that_is_cancelled_leaves_nothing(other: Box) -> None:
    before, kept = containers(), volumes()
    sandbox = other.make()
    starting = asyncio.create_task(sandbox.start())
    for _ in range(40):
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        starting = asyncio.create_task(sandbox.start())
        await asyncio.sleep(0.1)
        if containers() != before:
            break
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await sandbox.close()
    while containers() != before or volumes() != kept:
        await asyncio.sleep(0.1)
