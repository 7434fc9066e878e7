"""HumanEvalFix as tasks and its comparison, on a function made here and, where they are at hand, the real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import get_args

import pytest

from perf.arms import Outcome, Try, direct
from perf.humanevalfix import compared, section
from perf.repairs import Repair, load, passes
from tests.sandbox.conftest import namespaces_allowed

AREA = Repair(
    "Own/0",
    "area",
    "def area(a, b):\n    return a + b\n",
    "def check(area):\n    assert area(2, 3) == 6\n\ncheck(area)",
)
BENCHDATA = os.environ.get("HANDIWORK_BENCHDATA")


def tries(*outcomes: Outcome) -> dict[str, Try]:
    return {str(number): Try(str(number), outcome, 2, 100, 10, 1.5, "") for number, outcome in enumerate(outcomes)}


@pytest.mark.skipif(not namespaces_allowed(), reason="this machine allows no user namespaces")
@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        ("def area(a, b):\n    return a * b\n", True),
        (AREA.code, False),
        ("def area(a, b):", False),
        ("", False),
    ],
    ids=["right", "the bug", "no Python", "empty"],
)
async def test_a_solution_is_scored_by_its_tests(solution: str, expected: bool) -> None:
    assert await passes(AREA, solution) == expected


@pytest.mark.skipif(not BENCHDATA, reason="HANDIWORK_BENCHDATA is not set")
async def test_the_benchmarks_own_solution_passes_and_its_bug_does_not() -> None:
    assert BENCHDATA
    rows = (Path(BENCHDATA) / "humanevalfix/humanevalpack_python.jsonl").read_text().splitlines()
    repair, row = load(Path(BENCHDATA))[0], json.loads(rows[0])
    assert await passes(repair, row["declaration"] + row["canonical_solution"])
    assert not await passes(repair, repair.code)


def test_arms_are_compared_task_by_task() -> None:
    ours = tries("solved", "solved", "solved", "wrong answer")
    theirs = tries("solved", "format", "wrong answer", "wrong answer")
    name, tasks, difference, interval, only, never, p = compared("ours", ours, "theirs", theirs)
    assert (name, tasks, difference, only, never, p) == ("ours against theirs", "4", "+50 %", "2", "0", "0.5")
    assert interval.startswith("+0 to ")


def test_an_arm_against_itself_shows_no_difference() -> None:
    ours = tries("solved", "timeout")
    assert compared("ours", ours, "again", ours)[2:] == ["+0 %", "none: all alike", "0", "0", "1"]


def test_every_way_to_fail_has_its_line() -> None:
    lines = section({"ours": tries("solved", "solved", "format", "repeat")}).splitlines()
    cells = dict([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))
    assert set(get_args(Outcome)) < set(cells)
    assert (cells["solved"], cells["not submitted"], cells["model calls"]) == ("50 %", "0 %", "2.0")
    assert cells["solved, 95 %"] == "15 to 85 %"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "samples", "outcome", "calls"),
    [
        (["a + b", "a * b", "a - b"], 3, "solved", 2),
        (["a + b", "a - b", "a * b"], 2, "wrong answer", 2),
        (["a + b", None], 2, "format", 2),
        (["a * b"], 1, "solved", 1),
    ],
)
async def test_a_sampled_prompt_takes_the_first_answer_that_passes_or_the_last(
    answers: list[str | None], samples: int, outcome: str, calls: int, tmp_path: Path
) -> None:
    texts = ["I cannot." if one is None else f"```python\ndef area(a, b):\n    return {one}\n```" for one in answers]
    lines = [json.dumps({"content": text, "usage": {"input": 10, "output": 2}}) for text in texts]
    (tmp_path / "script").write_text("\n".join(lines))
    tried = await direct(f"scripted:{tmp_path / 'script'}", samples, 0.8, AREA, tmp_path)
    assert (tried.outcome, tried.calls, tried.tokens_in, tried.tokens_out) == (outcome, calls, 10 * calls, 2 * calls)
