"""HumanEvalFix for Python as a developer meets it: a function with a bug, its tests, and nothing else said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from handiwork.evals.scoring.programs import run_program

SECONDS = 10
"""What a solution and its tests may take together, as in the benchmark's own scorer for Python."""

SOLUTION, TESTS = "solution.py", "test_solution.py"


@dataclass(frozen=True, slots=True)
class Repair:
    """One task: ``code`` has the bug, ``tests`` calls the function ``entry`` and raises where it is wrong."""

    id: str
    entry: str
    code: str
    tests: str

    @property
    def instruction(self) -> str:
        """What an agent is asked to do."""
        return f"`python3 {TESTS}` fails: there is a bug in {SOLUTION}. Repair the function {self.entry}."

    @property
    def direct(self) -> str:
        """What a model alone is asked: code and tests in the prompt, as in the benchmark's "fixtests"."""
        return f"{self.code}\n{self.tests.strip()}\n\nFix bugs in {self.entry}. Answer with its whole code, corrected."

    def write(self, folder: Path) -> None:
        """Make the workspace."""
        folder.mkdir(parents=True)
        (folder / SOLUTION).write_text(self.code)
        (folder / TESTS).write_text(f"from solution import *\n\n{self.tests.strip()}\n")


def load(benchdata: Path) -> list[Repair]:
    """Return the tasks of the benchmark's own file for Python, in its order."""
    lines = (benchdata / "humanevalfix/humanevalpack_python.jsonl").read_text().splitlines()
    return [_repair(json.loads(line)) for line in lines]


def _repair(row: dict[str, str]) -> Repair:
    return Repair(row["task_id"], row["entry_point"], row["declaration"] + row["buggy_solution"], row["test"])


async def passes(repair: Repair, solution: str) -> bool:
    """Return whether the solution passes the tests within ``SECONDS``, in a sandbox of its own."""
    return (await run_program(solution, repair.tests, SECONDS)).passed
