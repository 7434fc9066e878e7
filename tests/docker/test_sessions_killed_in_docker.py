"""kill -9 of a session in an image at any moment: nothing is left after the next sweep, and it goes on."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from handiwork.agents.state import State
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.events.record import CompletionEvent, SnapshotEvent
from handiwork.log.store import Store
from handiwork.paths import runtime_dir
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.endpoint import sweep_stale
from scripts.harness.images import image
from tests.cli.conftest import cache, program
from tests.cli.program import HANDIWORK, Program, bash, finish
from tests.docker.test_owners_that_die_in_docker import containers, docker, volumes

__all__ = ["cache", "program"]

pytestmark = pytest.mark.usefixtures("docker_daemon")

POINTS = 12
LONGEST = 4.0  # seconds: by then some steps have been made
CUT = ("crashed", "interrupted")  # an action whose end nobody saw, and one that had not begun
SLEEP = f"sleep {random.randrange(70_000, 90_000)}"


def left(folder: Path) -> dict[str, set[str]]:
    """What there is of containers and what belongs to them, and of processes and sockets of ours."""
    commands = [_command(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "containers": containers(),
        "volumes": volumes(),
        "networks": set(docker("network", "ls", "--quiet")),
        "groups": _empty_groups(),
        "mounts": {line for line in mounts if str(folder) in line},
        "processes": {command for command in commands if str(folder) in command or SLEEP in command},
        "sockets": set(map(str, runtime_dir().glob("*"))),
    }


def _empty_groups() -> set[str]:
    """The control groups of containers in which nothing runs; in others may be the containers of another daemon."""
    found: set[str] = set()
    for folder, _, _ in os.walk("/sys/fs/cgroup"):
        if re.search("[0-9a-f]{64}", Path(folder).name):
            with suppress(OSError):
                if not Path(folder, "cgroup.procs").read_text():
                    found.add(folder)
    return found


def _command(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def sweep_until(before: dict[str, set[str]], folder: Path) -> None:
    """Do what a start does until nothing is left; what is in the middle of ending may need another."""
    while True:
        asyncio.run(docker_cli.sweep())
        sweep_stale()
        if all(found <= before[name] for name, found in left(folder).items()):
            return
        time.sleep(0.2)


def step(number: int) -> str:
    return f"{SLEEP} & echo {number} >> numbers; sleep 0.2; ln -sf {number} last"


async def folded(data: Path) -> list[Event]:
    """The events of the only session, which can all be applied to a state."""
    async with Store.open(data) as store:
        (session,) = await store.sessions(limit=2)
        events = await (await store.log(session.id)).read()
    state = State()
    for event in events:
        state.apply(event)
    return events


def test_kill_9_at_random_points_leaves_nothing_and_damages_nothing(program: Program) -> None:
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    steps = [bash(step(number)) for number in range(1000)]
    before = left(program.folder)
    options = ("--model", program.script(*steps), "--image", image("bookworm"), "--max-iterations", "2")
    assert program("run", "count", *options).returncode == 3
    events: list[Event] = []
    for _ in range(POINTS):
        resuming = [HANDIWORK, "resume", "--max-iterations", "900", "--json"]
        process = subprocess.Popen(
            resuming, cwd=program.workspace, env=program.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(chance.uniform(0, LONGEST))
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
        sweep_until(before, program.folder)
        events = asyncio.run(folded(program.data))
    done = sum(isinstance(event, CompletionEvent) for event in events)
    program.script(*steps[:done], bash("echo $(wc -l < numbers) $(tail -n 1 numbers) $(readlink last)"), finish())
    ended = program("resume", "--max-iterations", "990")
    assert ended.returncode == 0, ended.stderr
    events = asyncio.run(folded(program.data))
    odd = [event for event in events if isinstance(event, ErrorObservation) and event.error_id not in CUT]
    assert not odd, f"seed {seed}"
    assert not [event.problem for event in events if isinstance(event, SnapshotEvent) and not event.tree]
    ran = [event for event in events if isinstance(event, CmdOutputObservation)]
    lines, last, link = map(int, ran[-1].content.split())
    assert lines >= len(ran) - 1  # what a command that was cut had done is there as well
    assert link <= last  # the last commands may have been cut between the two
    sweep_until(before, program.folder)
