"""Measures how soon Handiwork is at work and what a step costs; prints a table of medians, or JSON with ``--json``."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import Limits, SessionStarted, StepStarted
from handiwork.log.store import Store
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.session.assemble import Setup, create

HANDIWORK = Path(sys.executable).with_name("handiwork")
RUNS = 5
ECHOES = 50
STEPS, WINDOW = 200, 50
EVENTS = 30_000


@dataclass(frozen=True)
class Row:
    """One thing that was measured: the median, the fastest and the slowest of ``runs``, in milliseconds."""

    what: str
    median: float
    fastest: float
    slowest: float
    runs: int


def row(what: str, seconds: Sequence[float]) -> Row:
    times = [1000 * second for second in seconds]
    return Row(what, statistics.median(times), min(times), max(times), len(times))


def measured(what: str, samples: Iterator[float]) -> Row:
    """Take one sample to warm up, which compiles what is imported, and then ``RUNS`` that count."""
    next(samples)
    return row(what, [next(samples) for _ in range(RUNS)])


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HANDIWORK_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "HANDIWORK_DATA": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}


def process(folder: Path, *command: str | Path) -> Iterator[float]:
    """Yield how long a process takes, again and again."""
    while True:
        began = time.monotonic()
        subprocess.run(command, env=environment(folder), stdout=subprocess.DEVNULL, check=True)
        yield time.monotonic() - began


def first_call(folder: Path, script: Path, sandbox: str) -> Iterator[float]:
    """Yield how long after its start ``handiwork run`` has the first answer of a model that answers at once."""
    flags = ("--model", f"scripted:{script}", "--workspace", str(folder / "project"), "--sandbox", sandbox, "--json")
    while True:
        began = time.monotonic()
        with subprocess.Popen(
            [HANDIWORK, "run", "say hi", *flags],
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as run:
            assert run.stdout is not None
            answered = next(time.monotonic() for line in run.stdout if json.loads(line)["type"] == "CompletionEvent")
            run.stdout.read()
        yield answered - began


@asynccontextmanager
async def bubblewrap(folder: Path) -> AsyncGenerator[Sandbox]:
    async def no_blobs(_: AsyncIterator[bytes]) -> str:
        raise AssertionError("the output is small")

    with tempfile.TemporaryDirectory(dir=folder) as name:
        session, base = Path(name, "session"), Path(name, "session/base")
        base.mkdir(parents=True)
        sandbox = sandboxes.create("bubblewrap", session, folder / "project", no_blobs, base)
        try:
            yield sandbox
        finally:
            await sandbox.close()


async def sandbox_rows(folder: Path) -> list[Row]:
    starts: list[float] = []
    echoes: list[float] = []
    for _ in range(RUNS + 1):
        async with bubblewrap(folder) as sandbox:
            began = time.monotonic()
            await sandbox.start()
            await sandbox.execute(CmdRunAction(command="echo hi"))
            starts.append(time.monotonic() - began)
            if len(starts) > RUNS:
                for number in range(ECHOES):
                    began = time.monotonic()
                    await sandbox.execute(CmdRunAction(command=f"echo hi {number}"))
                    echoes.append(time.monotonic() - began)
    return [row("bubblewrap: start to end of first command", starts[1:]), row("bubblewrap: echo", echoes)]


async def step_rows(folder: Path) -> list[Row]:
    """A step is from its begin to the next one's: model, command, log."""
    script = folder / "steps.jsonl"
    calls = [{"name": "bash", "arguments": {"command": f"echo hi {number}"}} for number in range(STEPS)]
    calls.append({"name": "finish", "arguments": {"message": "done"}})
    script.write_text("".join(json.dumps({"tool_calls": [call]}) + "\n" for call in calls))
    begins: list[float] = []

    def watch(item: object) -> None:
        if isinstance(item, StepStarted):
            begins.append(time.monotonic())

    async with Store.open(folder / "data") as store:
        limits = Limits(iterations=STEPS + 1)
        setup = Setup(
            agent="CodeActAgent", model=f"scripted:{script}", workspace=str(folder / "project"), limits=limits
        )
        opened = await create(store, folder / "data", setup, watch, "steps")
        try:
            state = await opened.run("say hi")
        finally:
            await opened.close()
    assert state.agent_state == "finished", state.last_error
    times = [after - before for before, after in pairwise(begins)]
    return [
        row(f"step in bubblewrap, first {WINDOW} of {STEPS}", times[:WINDOW]),
        row(f"step in bubblewrap, last {WINDOW} of {STEPS}", times[-WINDOW:]),
    ]


async def log_rows(folder: Path) -> list[Row]:
    async with Store.open(folder / "long") as store:
        log = await store.create(agent="a", model="m")
        async with log.lease():
            await log.append(SessionStarted(agent="a", model="m", sandbox="none", workspace="/", limits=Limits()))
            while (head := await log.head()) < EVENTS:
                batch: list[Event] = []
                for number in range(head + 1, head + 1000, 2):
                    batch.append(CmdRunAction(command=f"make test-{number}", source="agent"))
                    batch.append(CmdOutputObservation(command="make", content="ok\n" * 20, exit_code=0, cause=number))
                await log.append(*batch)
    pages: list[float] = []
    folds: list[float] = []
    for _ in range(RUNS):
        began = time.monotonic()
        async with Store.open(folder / "long") as store:
            log = await store.log(log.id)
            await log.read_back()
            pages.append(time.monotonic() - began)
            state = State()
            while page := await log.read(after=state.last_id):
                for event in page:
                    state.apply(event)
            folds.append(time.monotonic() - began)
    return [row(f"{EVENTS} events: open, last page", pages), row(f"{EVENTS} events: open, whole fold", folds)]


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    load = f"load {os.getloadavg()[0]:.1f}"
    return f"{model}, {os.cpu_count()} cores, {load}, Linux {platform.release()}, Python {platform.python_version()}"


def measure(folder: Path) -> Iterator[Row]:
    (folder / "project").mkdir()
    (folder / "project/README").write_text("read me\n")
    script = folder / "finish.jsonl"
    script.write_text('{"tool_calls": [{"name": "finish", "arguments": {"message": "hi"}}]}\n')
    yield measured("python that does nothing", process(folder, sys.executable, "-c", ""))
    yield measured("python that imports handiwork", process(folder, sys.executable, "-c", "import handiwork.cli.run"))
    yield measured("handiwork --help", process(folder, HANDIWORK, "--help"))
    yield measured("handiwork run to first answer, no sandbox", first_call(folder, script, "none"))
    yield measured("handiwork run to first answer, bubblewrap", first_call(folder, script, "bubblewrap"))
    yield from asyncio.run(sandbox_rows(folder))
    yield from asyncio.run(step_rows(folder))
    yield from asyncio.run(log_rows(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON instead of the table")
    arguments = parser.parse_args()
    where = machine()
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as name:
        Path(name).chmod(0o755)
        rows = list(measure(Path(name)))
    if arguments.as_json:
        print(json.dumps({"machine": where, "milliseconds": [dataclasses.asdict(one) for one in rows]}, indent=1))
        return
    print(where)
    print(f"\n{'milliseconds':44}{'median':>9}{'fastest':>9}{'slowest':>9}{'runs':>6}")
    for one in rows:
        print(f"{one.what:44}{one.median:9.1f}{one.fastest:9.1f}{one.slowest:9.1f}{one.runs:6}")


if __name__ == "__main__":
    main()
