"""How often the best of 4 passes, and one alone: ``python -m perf.best_of [--trials 10] [--first 20]``.

Each trial is a function with a bug of HumanEvalFix, whose tests are the test command; every candidate has six steps
at temperature 0.8 with the local model. One alone is each of the four attempts for itself: nothing is run twice.
Results are kept in build/best_of, and a trial that is there is not done again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from handiwork.evals.reporting.statistics import wilson
from handiwork.events.record import Limits
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.time_travel.best_of import BestOfRequest, run_attempts
from perf.repairs import TESTS, Repair, load

MODEL = "local:qwen2.5-coder-1.5b"
NUMBER, STEPS, TEMPERATURE = 4, 6, 0.8
OUT = Path("build/best_of")


async def trial(repair: Repair, folder: Path) -> list[dict[str, object]]:
    """Return what came of each candidate, the best first."""
    workspace = folder / "workspace"
    repair.write(workspace)
    limits = Limits(iterations=STEPS)
    config = SessionConfig(
        agent="CodeActAgent", model=MODEL, workspace=str(workspace), limits=limits, temperature=TEMPERATURE
    )
    contest = BestOfRequest(repair.instruction, f"python3 {TESTS}", NUMBER, [(MODEL, None)], config)
    async with Store.open(folder / "data") as store:
        _, attempts = await run_attempts(store, folder / "data", contest, lambda _: None)
    return [
        {"session": one.session, "passed": one.passed, "lines": one.lines, "steps": one.state.iteration}
        for one in attempts
    ]


def main(trials: int, first: int) -> None:
    """Run the trials that are not there yet, then print how often each passed, with 95 % intervals (Wilson)."""
    benchdata = os.environ.get("HANDIWORK_BENCHDATA")
    if benchdata is None:
        sys.exit("HANDIWORK_BENCHDATA is not set: it names the folder with HumanEvalFix")
    OUT.mkdir(parents=True, exist_ok=True)
    results: list[list[dict[str, object]]] = []
    for repair in load(Path(benchdata))[first : first + trials]:
        folder = OUT / repair.id.replace("/", "-")
        done = folder / "attempts.json"
        if not done.exists():
            done.write_text(json.dumps(asyncio.run(trial(repair, folder.absolute()))))
        results.append(json.loads(done.read_text()))
        passing = sum(bool(one["passed"]) for one in results[-1])
        print(f"{repair.id}: {passing} of {NUMBER} pass", flush=True)
    singles = [bool(one["passed"]) for result in results for one in result]
    bests = [bool(result[0]["passed"]) for result in results]
    for name, passed in (("one alone", singles), (f"best of {NUMBER}", bests)):
        low, high = wilson(sum(passed), len(passed))
        print(f"{name:10} {sum(passed)} of {len(passed)} pass: {sum(passed) / len(passed):.2f} ({low:.2f}-{high:.2f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--first", type=int, default=20, help="number of the first task")
    options = parser.parse_args()
    main(options.trials, options.first)
