"""Repairs the 100 Python tasks of HumanEvalFix in four ways with one local model, and compares them task by task.

``python -m perf.humanevalfix`` runs what is not yet in ``--out`` and prints the report; it can be stopped and
started again at any time. The benchmark's data are read from HANDIWORK_BENCHDATA.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import datetime
import json
import os
import shutil
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.progress import Progress

from handiwork.evals.reporting.statistics import bootstrap, mcnemar_exact, wilson
from handiwork.events.record import Limits
from handiwork.llm.local.model import LocalLLM, server_folder_of
from handiwork.llm.local.weights import find
from perf import arms
from perf.arms import Arm, Outcome, Try
from perf.environments import environment
from perf.repairs import Repair, load
from perf.report import machine, write
from perf.table import aligned

MODEL = "qwen2.5-coder-1.5b"
OURS, DIRECT, SAMPLED, MINI = ARMS = ("CodeActAgent", "direct prompt", "sampled prompt", "mini-swe-agent")
SAMPLES, TEMPERATURE = 13, 0.8
"""The answers of the sampled prompt at the most, as many as CodeActAgent asks for on average, and their temperature."""
DEADLINE = 900.0
"""Seconds a try may take."""
STEPS = 25
"""Steps of mini-swe-agent, which has no limit of its own for a model that costs nothing."""
MEANS = {"calls": "model calls", "tokens_in": "tokens in", "tokens_out": "tokens out", "seconds": "seconds"}
HEADINGS = ["solved by", "tasks", "difference", "95 %", "only the first", "only the second", "p"]


def tries_of(folder: Path) -> dict[str, Try]:
    """Return what was tried already, by task."""
    file = folder / "tries.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return {found.task: found for found in (Try(**json.loads(line)) for line in lines)}


async def run_arm(name: str, arm: Arm, repairs: Sequence[Repair], folder: Path, bar: Progress) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = tries_of(folder)
    left = [repair for repair in repairs if repair.id not in known]
    task = bar.add_task(name, total=len(repairs), completed=len(repairs) - len(left))
    for repair in left:
        place = folder / repair.id.replace("/", "-")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        found = await arm(repair, place)
        with (folder / "tries.jsonl").open("a") as file:
            file.write(json.dumps(dataclasses.asdict(found)) + "\n")
        bar.advance(task)


async def run(chosen: Sequence[str], repairs: Sequence[Repair], out: Path, bar: Progress) -> None:
    llm = LocalLLM(MODEL)
    await llm.open()
    address = server_folder_of(await find(MODEL, lambda _, __: None)).address()
    assert address is not None
    model = f"local:{MODEL}"
    known: dict[str, Arm] = {
        OURS: partial(arms.codeact, model, Limits(time=DEADLINE)),
        DIRECT: partial(arms.direct, model, 1, 0.0),
        SAMPLED: partial(arms.direct, model, SAMPLES, TEMPERATURE),
        MINI: partial(arms.mini, environment("mini_swe_agent", (3, 10)), address, MODEL, STEPS, DEADLINE),
    }
    try:
        for name in chosen:
            await run_arm(name, known[name], repairs, out / name.replace(" ", "-"), bar)
    finally:
        await llm.close()


def section(found: dict[str, dict[str, Try]]) -> str:
    """Return the tables: how the tries ended, what they took, and the arms against each other."""
    name, *others = found
    ends = [["tries", *found], ["number", *(str(len(tries)) for tries in found.values())]]
    for outcome in get_args(Outcome):
        counts = [Counter(one.outcome for one in tries.values())[outcome] for tries in found.values()]
        ends.append(
            [outcome, *(f"{100 * n / len(tries):.0f} %" for n, tries in zip(counts, found.values(), strict=True))]
        )
    ends.insert(3, ["solved, 95 %", *(interval_text(tries) for tries in found.values())])
    for what, text in MEANS.items():
        means = [statistics.fmean(getattr(one, what) for one in tries.values()) for tries in found.values()]
        ends.append([text, *(f"{mean:,.1f}" for mean in means)])
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    said = [
        f"Measured on {day}: {machine()}; {MODEL}, first asked at temperature 0, by the {SAMPLED} at {TEMPERATURE}."
    ]
    said.append(aligned(ends, range(1, len(found) + 1)))
    if others:
        said.append(aligned([HEADINGS, *(compared(name, found[name], one, found[one]) for one in others)], range(1, 7)))
    return "\n\n".join(said)


def interval_text(tries: dict[str, Try]) -> str:
    """Return the 95 % interval of the share that was solved (Wilson's)."""
    interval = wilson(sum(one.outcome == "solved" for one in tries.values()), len(tries))
    return f"{100 * interval.low:.0f} to {100 * interval.high:.0f} %"


def compared(one: str, tries: dict[str, Try], other: str, others: dict[str, Try]) -> list[str]:
    """Compare two arms on the tasks both tried: exact McNemar test, and a paired bootstrap interval (95 %)."""
    both = [task for task in tries if task in others]
    solved = [(tries[task].outcome == "solved", others[task].outcome == "solved") for task in both]
    only, never = solved.count((True, False)), solved.count((False, True))
    differences = [100.0 * (int(a) - int(b)) for a, b in solved]
    between = "none: all alike"
    if len(set(differences)) > 1:
        interval = bootstrap(differences)
        between = f"{interval.low:+.0f} to {interval.high:+.0f} %"
    cells = (str(len(both)), f"{statistics.fmean(differences):+.0f} %", between, str(only))
    return [f"{one} against {other}", *cells, str(never), f"{mcnemar_exact(only, never):.2g}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perf.humanevalfix", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/humanevalfix"), help="where everything is kept")
    parser.add_argument("--arm", action="append", choices=ARMS, help="only this one; may be given again")
    parser.add_argument("--tasks", default="0:100", help="which tasks, as in FIRST:END")
    parser.add_argument("--report", action="store_true", help="only print what was found")
    parser.add_argument("--write", action="store_true", help="write it into docs/performance.md too")
    arguments = parser.parse_args()
    data = os.environ.get("HANDIWORK_BENCHDATA")
    if not data:
        sys.exit("Set HANDIWORK_BENCHDATA to the folder that has humanevalfix/humanevalpack_python.jsonl.")
    first, _, end = arguments.tasks.partition(":")
    repairs = load(Path(data))[int(first) : int(end)]
    out: Path = arguments.out.absolute()
    chosen = arguments.arm or ARMS
    if not arguments.report:
        with Progress(console=Console(stderr=True)) as bar:
            asyncio.run(run(chosen, repairs, out, bar))
    wanted = {repair.id for repair in repairs}
    tried = {name: tries_of(out / name.replace(" ", "-")) for name in chosen}
    found = {name: {task: one for task, one in tries.items() if task in wanted} for name, tries in tried.items()}
    text = section({name: tries for name, tries in found.items() if tries})
    print(text)
    if arguments.write:
        write(text, "python -m perf.humanevalfix")


if __name__ == "__main__":
    main()
