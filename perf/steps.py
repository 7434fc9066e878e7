"""Runs an agent for hundreds of steps and takes down what each step costs all of its processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from perf.contenders import Contender
from perf.endpoint import Json, serving
from perf.processes import descendants, end_descendants, memory, peak_memory, total_cpu

MEMORY_EVERY = 25


@dataclass(frozen=True)
class Moment:
    """A request of the agent's: when it came and was answered (s), CPU of all and of the agent's process (s)."""

    came: float
    answered: float
    cpu: float
    client: float


@dataclass
class Run:
    """What a run has cost: seconds since its start, bytes."""

    moments: list[Moment] = field(default_factory=list[Moment])
    client_memory: int = 0
    memory: int = 0
    disk: int = 0

    def wall(self, first: int, last: int) -> float:
        """Return the mean seconds of these steps, from the model's answer to the next request."""
        waits = [
            after.came - before.answered
            for before, after in zip(self.moments[first - 1 : last], self.moments[first : last + 1], strict=True)
        ]
        return sum(waits) / len(waits)

    def cpu(self, first: int, last: int) -> float:
        """Return the mean CPU seconds of these steps, of all processes."""
        return (self.moments[last].cpu - self.moments[first - 1].cpu) / (last - first + 1)

    def client(self, first: int, last: int) -> float:
        """Return the mean CPU seconds of these steps, of the agent's own process."""
        return (self.moments[last].client - self.moments[first - 1].client) / (last - first + 1)


async def run(contender: Contender, folder: Path, steps: int, limit: float) -> Run:
    """Run ``steps`` steps and the end, or as many as fit into ``limit`` seconds."""
    for name in ("project", "data", "config"):
        (folder / name).mkdir()
    (folder / "project/README").write_text("read me\n")
    done, began, pid = Run(), time.monotonic(), 0

    def answer(number: int) -> tuple[str, Json]:
        came = time.monotonic() - began
        below = descendants(os.getpid())
        if (client := below.get(pid)) is None:
            raise ConnectionAbortedError("the agent was ended while it asked")
        cpu = total_cpu(below)
        if number % MEMORY_EVERY == 0:
            done.memory = max(done.memory, sum(memory(one) for one in below))
            done.client_memory = peak_memory(pid)
        done.moments.append(Moment(came, time.monotonic() - began, cpu, client.cpu))
        return contender.answer(number, steps)

    async with serving(answer) as url:
        began = time.monotonic()
        process = start(contender, url, steps, folder)
        pid = process.pid
        try:
            code = await asyncio.to_thread(process.wait, limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_descendants()
    if len(done.moments) <= steps and code is not None:
        end = (folder / "said").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{contender.name} ended after {len(done.moments)} of {steps} steps:\n{end}")
    done.disk = size(folder / "data")
    return done


def start(contender: Contender, url: str, steps: int, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            contender.command(url, steps, folder),
            cwd=folder / "project",
            env=contender.environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )


def size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
