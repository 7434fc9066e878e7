"""The example benchmark of the documentation does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.evals.benchmark import Benchmark, DataError, Instance
from handiwork.evals.registry import find
from tests.evals.rollouts import rollout

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "benchmark"


@pytest.fixture
def benchmark() -> Benchmark:
    return find(str(FOLDER / "arithmetic.py"))


@pytest.fixture
def instances(benchmark: Benchmark) -> list[Instance]:
    return benchmark.load(FOLDER, "test")


async def test_right_numbers_score_however_they_are_written(benchmark: Benchmark, instances: list[Instance]) -> None:
    for one in instances:
        number = one.row["answer"]
        for said in (str(number), f"<answer>{number:,}</answer>", f"It is this:\n<answer> {float(number)} </answer>"):
            assert (await benchmark.score(rollout(one, said))).value == 1.0


@pytest.mark.parametrize("said", ["", "<answer></answer>", "<answer>-1</answer>", "I do not know."])
async def test_wrong_and_empty_answers_do_not(benchmark: Benchmark, instances: list[Instance], said: str) -> None:
    for one in instances:
        score = await benchmark.score(rollout(one, said))
        assert (score.value, score.details) == (0.0, {"truth": one.row["answer"]})


def test_a_table_is_in_the_workspace_where_the_instruction_says_so(
    benchmark: Benchmark, instances: list[Instance], tmp_path: Path
) -> None:
    for one in instances:
        workspace = tmp_path / one.id
        workspace.mkdir()
        benchmark.prepare(one, workspace)
        assert [file.name for file in workspace.iterdir()] == (["ledger.csv"] if one.group == "table" else [])
        assert ("ledger.csv" in benchmark.instruction(one)) == (one.group == "table")


def test_data_that_are_not_its_own_are_told(benchmark: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "arithmetic.jsonl").write_text('{"id": "1", "level": "plain", "question": "What is 1 + 1?"}\n')
    with pytest.raises(DataError, match="line 1 has no answer"):
        benchmark.load(tmp_path, "test")
    (tmp_path / "arithmetic.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match="line 1 is no JSON object"):
        benchmark.load(tmp_path, "test")
