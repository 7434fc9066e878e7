"""From asking for a sandbox to the end of its first command, beside ``docker run --rm IMAGE true``, in turn.

``python -m perf.starts [ROUNDS]``, one at a time and then 20 at once. The image is of Debian packages (tests/docker),
the workspace is a small project of which the session's copy is there already.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.sandbox.create import create
from handiwork.workspace.copy import make_copy
from handiwork.workspace.layers import SandboxPaths
from scripts.harness.daemon import daemon
from scripts.harness.images import image

AT_ONCE = 20
MOST = {"bubblewrap": 0.8, "docker": 1.3}
"""The most that a start may take of the time of ``docker run``."""


async def no_blobs(_: AsyncIterator[bytes]) -> str:
    """Refuse large outputs: there are none."""
    raise AssertionError("an output was large")


async def sandboxed(kind: str, places: SandboxPaths, name: str) -> float:
    """Return the seconds until a command has been run in a new sandbox; its end is not among them."""
    began = time.perf_counter()
    sandbox = create(kind, places, no_blobs, image=name)
    try:
        await sandbox.start()
        observation = await sandbox.execute(CmdRunAction(command="true", timeout=60))
        took = time.perf_counter() - began
        assert isinstance(observation, CmdOutputObservation)
        assert observation.exit_code == 0
    finally:
        await sandbox.close()
    return took


async def plain(name: str) -> float:
    """Return the seconds that ``docker run`` takes for the same command."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *("docker", "run", "--rm", "--network=none", name, "true"), stdin=DEVNULL, stdout=DEVNULL
    )
    assert await process.wait() == 0
    return time.perf_counter() - began


class Copies:
    """Makes sessions, each with its own copy of one small project."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, 0
        self._project = folder / "project"
        self._project.mkdir()
        for number in range(10):
            (self._project / f"file{number}.py").write_text(f"print({number})\n")

    def new(self) -> SandboxPaths:
        """Return the places of a session that has begun."""
        self._made += 1
        session = self._folder / f"sessions/{self._made}"
        session.mkdir(parents=True, mode=0o700)
        return SandboxPaths(session, self._project, make_copy(self._project, session).base)


async def together(count: int, one: Callable[[], Awaitable[float]]) -> float:
    """Return the seconds until the last of so many that begin at once has had its first command."""
    return max(await asyncio.gather(*(one() for _ in range(count))))


async def measured(rounds: int, count: int, copies: Copies, name: str) -> None:
    """Print the medians, and the ratios to ``docker run``."""
    ways: dict[str, Callable[[], Awaitable[float]]] = {
        "docker run": lambda: plain(name),
        **{kind: lambda kind=kind: sandboxed(kind, copies.new(), name) for kind in MOST},
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, one in ways.items():
            took = await together(count, one)
            if number:  # what is read and compiled the first time is left out
                times[way].append(took)
    for way, took in times.items():
        ratio = statistics.median(own / its for own, its in zip(took, times["docker run"], strict=True))
        least, most = 1000 * min(took), 1000 * max(took)
        target = f" (at most {MOST[way]})" if way in MOST and count == 1 else ""
        print(
            f"{count:3} at once: {way:10} {1000 * statistics.median(took):7.1f} ms, {least:.1f} to {most:.1f}: "
            f"{ratio:.2f} of docker run{target}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main(rounds: int) -> None:
    """Measure both, with a Docker daemon of our own where none runs."""
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as folder, daemon():
        name, copies = image("bookworm"), Copies(Path(folder))
        asyncio.run(measured(rounds, 1, copies, name))
        asyncio.run(measured(max(1, rounds // 5), AT_ONCE, copies, name))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
