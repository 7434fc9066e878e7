"""What is measured, part by part: each part yields the rows of the table that one command repeats."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from perf.contenders import MINI, OPENHANDS, OURS, Contender
from perf.scripted import scripted
from perf.steps import Run, run
from perf.table import Row, Target, Values, under

RUNS = 5
ECHOES = 50
STEPS = 500
RUN_LIMIT = 360.0
"""Seconds that the run of 500 steps may take; what is not reached then is left out."""
AROUND = {25: (13, 37), 50: (38, 62), 200: (188, 212), 475: (463, 487), 500: (476, 500)}
"""The steps that are averaged for each of these."""
EARLY, LATE = (25, 50), (475, 500)
EVENTS = (500, 30_000)
MB = 1_000_000

_IMPORT = """
import time
began = time.perf_counter()
{statement}
print(time.perf_counter() - began)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""

CPU_TARGETS = (50, 200, 500)


def start(found: Sequence[Contender]) -> Iterator[Row]:
    """Import, --help, and the first model call of a fresh process; medians of RUNS after one to warm up."""
    package = {OURS: imported(found[0], "import handiwork")}
    parts = {one.name: imported(one, one.parts) for one in found}
    yield Row("start", "`import handiwork`", "ms", column(package, 0, 1000), under(OURS, 100))
    yield Row("start", "import of all that a session needs", "ms", column(parts, 0, 1000))
    yield Row("start", "memory after that import", "MB", column(parts, 1, 1 / MB))
    helped = {one.name: (typical(lambda one=one: shown_help(one)),) for one in found if one.shown_help}
    yield Row("start", "`--help`", "ms", column(helped, 0, 1000), under(OURS, 200))
    first = {one.name: first_call(one) for one in found}
    yield Row("start", "start to first model call", "ms", column(first, 0, 1000), under(OURS, 1000))
    yield Row("start", "CPU until the first model call", "ms", column(first, 1, 1000))


def steps(found: Sequence[Contender], curves: dict[str, Run]) -> Iterator[Row]:
    """500 steps against an endpoint that answers at once; the runs are kept in ``curves`` for the picture."""
    for one in found:
        note(f"{one.name}: {STEPS} steps")
        with place() as folder:
            curves[one.name] = asyncio.run(run(one, folder, STEPS, RUN_LIMIT))
    for at, span in AROUND.items():
        yield Row("steps", f"step {at}, wall", "ms", of_runs(curves, lambda run, span=span: run.wall(*span), span))
    for at, span in AROUND.items():
        values = of_runs(curves, lambda run, span=span: run.cpu(*span), span)
        target = Target(f"< {MINI}, <= 1/5 {OPENHANDS}", cheaper) if at in CPU_TARGETS else None
        yield Row("steps", f"step {at}, CPU of all processes", "ms", values, target)
    client = of_runs(curves, lambda run: run.client(*AROUND[STEPS]), AROUND[STEPS])
    yield Row("steps", f"step {STEPS}, CPU of the agent's process", "ms", client, under(OURS, 10, inclusive=True))
    wall = of_runs(curves, lambda run: run.wall(*LATE) / run.wall(*EARLY), LATE, 1)
    cpu = of_runs(curves, lambda run: run.cpu(*LATE) / run.cpu(*EARLY), LATE, 1)
    yield Row("steps", "wall, steps 475-500 to 25-50", "times", wall)
    yield Row("steps", "CPU, steps 475-500 to 25-50", "times", cpu)
    yield Row("steps", "peak memory of the agent's process", "MB", memory(curves, lambda run: run.client_memory))
    yield Row("steps", "peak memory of all processes", "MB", memory(curves, lambda run: run.memory))
    yield Row("steps", f"on disk after {STEPS} steps", "MB", memory(curves, lambda run: run.disk))


def flat(found: Sequence[Contender]) -> Iterator[Row]:
    """Ours with a scripted model: no request and no conversation is sent, what is left has to stay flat."""
    with place() as folder:
        run = scripted(found[0], folder, STEPS, (EARLY, LATE))
    for name, cost in (("wall", 0), ("CPU of all processes", 1)):
        early, late = run[EARLY][cost], run[LATE][cost]
        for span, value in ((EARLY, early), (LATE, late)):
            yield Row("flat", f"scripted model, steps {span[0]}-{span[1]}, {name}", "ms", {OURS: 1000 * value})
        growth = {OURS: late / early}
        yield Row(
            "flat", f"scripted model, 475-500 to 25-50, {name}", "times", growth, under(OURS, 1.5, inclusive=True)
        )


def resume(found: Sequence[Contender]) -> Iterator[Row]:
    """A kept session of commands and their outputs, opened again to its last page and its state."""
    for events in EVENTS:
        values: dict[str, float] = {}
        for one in found:
            if one.resumes:
                note(f"{one.name}: a session of {events:,} events")
                with place() as folder:
                    values |= driven(one, "seconds", folder, "resume", str(folder), events, RUNS)
        target = under(OURS, 1000) if events == max(EVENTS) else None
        yield Row("resume", f"open a session of {events:,} events", "ms", values, target)


def shell(found: Sequence[Contender]) -> Iterator[Row]:
    """The shell that commands run in: ours in its sandbox, the peers' on the machine itself."""
    starts: dict[str, float] = {}
    echoes: dict[str, float] = {}
    for one in found:
        note(f"{one.name}: shell")
        with place() as folder:
            found_here = [one.run_driver(folder, "shell", str(folder), ECHOES) for _ in range(RUNS + 1)][1:]
        starts[one.name] = 1000 * statistics.median(each["start"] for each in found_here)
        echoes[one.name] = 1000 * statistics.median(echo for each in found_here for echo in each["echo"])
    yield Row("shell", "shell or sandbox: start to end of first command", "ms", starts, under(OURS, 300))
    yield Row("shell", "`echo`", "ms", echoes, under(OURS, 2))


def cheaper(values: Values) -> bool:
    """Tell whether ours is below mini-swe-agent and at most a fifth of openhands-sdk. Raises KeyError."""
    return values[OURS] < values[MINI] and values[OURS] <= values[OPENHANDS] / 5


@contextmanager
def place() -> Generator[Path]:
    """Give a new folder that a sandbox's own user can reach too."""
    with tempfile.TemporaryDirectory(prefix="hw-perf-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def typical(sample: Callable[[], float]) -> float:
    """Take one sample to warm up, which compiles what is imported, and return the median of ``RUNS`` more."""
    sample()
    return statistics.median(sample() for _ in range(RUNS))


def imported(one: Contender, statement: str) -> tuple[float, float]:
    """Return the seconds of an import in a new process, and the most bytes that were resident then."""
    note(f"{one.name}: {statement}")

    def sample() -> tuple[float, float]:
        with place() as folder:
            code = _IMPORT.format(statement=statement)
            said = subprocess.run(
                [one.python, "-c", code], env=one.environment(folder), capture_output=True, text=True, check=True
            )
        seconds, size = said.stdout.splitlines()[-2:]
        return float(seconds), 1024 * float(size)

    samples = [sample() for _ in range(RUNS + 1)][1:]
    return statistics.median(seconds for seconds, _ in samples), statistics.median(size for _, size in samples)


def shown_help(one: Contender) -> float:
    with place() as folder:
        began = time.monotonic()
        subprocess.run(one.shown_help, env=one.environment(folder), capture_output=True, check=True)
        return time.monotonic() - began


def first_call(one: Contender) -> tuple[float, float]:
    """Return the seconds from the start of a run to its first request, and the CPU seconds of all until then."""
    note(f"{one.name}: first model call")

    def sample() -> tuple[float, float]:
        with place() as folder:
            (moment, *_) = asyncio.run(run(one, folder, 0, RUN_LIMIT)).moments
        return moment.came, moment.cpu

    samples = [sample() for _ in range(RUNS + 1)][1:]
    return statistics.median(came for came, _ in samples), statistics.median(cpu for _, cpu in samples)


def column(found: dict[str, tuple[float, ...]], index: int, factor: float) -> dict[str, float]:
    return {name: factor * values[index] for name, values in found.items()}


def of_runs(
    runs: dict[str, Run], value: Callable[[Run], float], span: tuple[int, int], factor: float = 1000
) -> dict[str, float]:
    """Return a cost of every run that reached the span's end, by default in milliseconds."""
    return {name: factor * value(run) for name, run in runs.items() if len(run.moments) > span[1]}


def memory(runs: dict[str, Run], value: Callable[[Run], int]) -> dict[str, float]:
    return {name: value(run) / MB for name, run in runs.items()}


def driven(one: Contender, key: str, folder: Path, *arguments: str | int) -> dict[str, float]:
    """Return the median of what the driver reports, in milliseconds; nothing where it takes too long."""
    try:
        return {one.name: 1000 * statistics.median(one.run_driver(folder, *arguments)[key])}
    except subprocess.TimeoutExpired as error:
        note(f"{one.name}: {' '.join(map(str, arguments))}: given up after {error.timeout:.0f} s")
        return {}
