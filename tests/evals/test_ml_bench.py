"""ML-Bench: real rows for what an answer must have, and a repository of our own for what runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError, Instance
from handiwork.evals.benchmarks.ml_bench import ANSWER, SCRIPT, MLBench, fault, is_script
from handiwork.evals.running import plan
from handiwork.evals.running.arms import EMPTY, ORACLE
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result
from tests.cli.program import bash, finish
from tests.evals.rollouts import instances
from tests.evals.runs import finished, no_status, script

ML = MLBench()

TRAIN = """import argparse, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--epochs", type=int, required=True)
options = parser.parse_args()
time.sleep(60 if options.epochs > 50 else 0)
sys.exit(options.lr >= 1)
"""
MODEL = "def fit(rate):\n    assert rate < 1\n"
ROW: Mapping[str, Any] = {
    "github_id": 10,
    "github": "https://git.example.org/lab/tiny",
    "repo_id": 1,
    "path": "./train",
    "arguments": "{'lr': '0.01', 'epochs': 3}",
    "instruction": "Train for 3 epochs with a learning rate of 0.01.",
    "oracle": "python train.py --epochs 100",
    "type": SCRIPT,
    "id": 1,
    "prefix_code": "pip install tiny",
    "output": "python train.py --lr 0.01 --epochs 3",
}
CODE: Mapping[str, Any] = {
    **ROW,
    "id": 2,
    "path": "./",
    "type": "Python Code",
    "arguments": "{'rate': 0.5}",
    "instruction": "Fit the model with the rate 0.5.",
    "prefix_code": "",
    "output": "from model import fit\nfit(0.5)\n",
}


def written(place: Path, *rows: Mapping[str, Any]) -> Path:
    """A data folder with these rows and their repository."""
    repository = place / "repos/tiny"
    (repository / "train").mkdir(parents=True, exist_ok=True)
    (repository / ".git").mkdir(exist_ok=True)
    (repository / "train/train.py").write_text(TRAIN)
    (repository / "model.py").write_text(MODEL)
    (place / "ml_bench_full.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return place


def loaded(place: Path, *rows: Mapping[str, Any]) -> list[Instance]:
    return ML.load(written(place, *rows), "full")


def test_real_reference_answers_satisfy_the_check_but_for_18_that_lack_a_value_of_their_own() -> None:
    real = instances(ML)
    assert len(real) == 200
    faults = {one.id: fault(one, one.row["output"]) for one in real}
    assert sum(map(bool, faults.values())) == 18
    assert all("it lacks" in why for why in faults.values() if why)
    assert all(is_script(one.row["output"]) == (one.row["type"] == SCRIPT) for one in real)
    # The field oracle is a part of the README, and no answer.
    assert sum(bool(fault(one, one.row["oracle"])) for one in real) > 150


def test_real_answers_of_other_tasks_and_none_are_faulty() -> None:
    real = instances(ML)
    assert all(fault(one, "") for one in real)
    others = [fault(one, other.row["output"]) for one, other in pairwise(real)]
    assert sum(map(bool, others)) > 0.9 * len(others)


def test_real_tasks_are_skipped_with_the_command_that_gets_their_repository() -> None:
    for one in instances(ML):
        assert ML.skipped(one).startswith(f"its repository is not here: `git clone {one.row['github']} /")
        assert ML.skipped(one).endswith(f"repos/{one.group}`")
        assert one.row["output"] not in ML.instruction(one)


def test_an_answer_has_every_value_in_any_case_and_the_form_of_its_type(tmp_path: Path) -> None:
    one, code = loaded(tmp_path, {**ROW, "arguments": "{'dataset': 'Cora', 'epochs': 3}"}, CODE)
    assert fault(one, "python train.py --dataset cora --epochs 3") == ""
    assert fault(one, "python train.py --dataset cora") == "it lacks 3, the value of epochs"
    assert fault(one, "fit('cora', 3)") == "it is no script that runs a .py or .sh file"
    assert fault(code, "fit(0.5)") == ""
    assert fault(code, "python fit.py --rate 0.5") == "it is a script, not Python code"


def test_arguments_that_are_no_dictionary_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the arguments of tiny, 1, are no dictionary"):
        loaded(tmp_path, {**ROW, "arguments": "{'lr': "})


def test_the_workspace_is_the_repository_without_its_history(tmp_path: Path) -> None:
    (one,) = loaded(tmp_path, ROW)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    ML.prepare(one, workspace)
    assert sorted(path.name for path in workspace.iterdir()) == ["model.py", "train"]
    assert "pip install tiny" in ML.instruction(one)
    assert "the folder ./train" in ML.instruction(one)
    gone = replace(one, row={**one.row, "repository": str(tmp_path / "gone")})
    assert "git clone" in ML.skipped(gone)
    assert ML.skipped(one) == ""


async def ran(place: Path, data: Path, agent: str, *replies: dict[str, object]) -> dict[str, Result]:
    """The results of an arm, or of an agent with these replies."""
    conditions = Conditions(
        benchmark="ml-bench",
        split="full",
        data=str(data),
        agent=agent,
        model=script(place / "model.jsonl", *replies) if replies else "",
        user_model="",
    )
    planned = await plan.new(registry.find("ml-bench"), conditions, InstanceSelection(), 1, no_status)
    return {one.id: one for one in (await finished(place / "out", planned)).values()}


@pytest.mark.slow
async def test_the_arms_score_1_and_0_and_tasks_whose_reference_does_not_run_are_unfit(tmp_path: Path) -> None:
    impossible = {**ROW, "id": 3, "output": "python missing.py --lr 0.01 --epochs 3"}
    data = written(tmp_path, ROW, CODE, impossible)
    for arm, score in ((ORACLE, 1.0), (EMPTY, 0.0)):
        (tmp_path / arm).mkdir()
        results = await ran(tmp_path / arm, data, arm)
        unfit = results.pop("10-3")
        assert unfit.outcome == "unfit"
        assert "missing.py" in unfit.why
        assert {one: (result.outcome, result.score) for one, result in results.items()} == {
            "10-1": ("submitted", score),
            "10-2": ("submitted", score),
        }, results


@pytest.mark.slow
async def test_a_repository_may_have_more_than_100_mb(tmp_path: Path) -> None:
    data = written(tmp_path, ROW)
    with (data / "repos/tiny/weights.bin").open("wb") as file:
        file.truncate(100_000_001)
    (one,) = (await ran(tmp_path, data, ORACLE)).values()
    assert (one.outcome, one.score) == ("submitted", 1.0), (one.why, one.details)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "score", "why"),
    [
        ("python train.py --epochs 3 --lr 0.01", 1, ""),
        ("python train.py --epochs 99 --lr 0.01 # 3", 1, ""),
        ("python train.py --epochs 3 --lr 0.01' > answer.txt; cd /tmp #", 1, ""),
        ("python train.py --epochs 3 --lr 0.01' > answer.txt; rm -r train; touch train #", 0, "it exits with 1"),
        ("python train.py --epochs 3 --lr 10.01", 0, "it exits with 1"),
        ("cd .. && python train.py --epochs 3 --lr 0.01", 0, "it exits with 2"),
        ("python train.py --epochs 3 --lr 0.01; kill -9 $$", 0, "it exits with 137"),
        ("python train.py --epochs 3 --lr 0.1", 0, "it lacks '0.01', the value of lr"),
    ],
    ids=[
        "runs",
        "still runs",
        "in another folder",
        "without the folder",
        "fails",
        "elsewhere",
        "killed",
        "other value",
    ],
)
async def test_an_agents_answer_is_right_if_it_exits_with_0_or_still_runs(
    answer: str, score: int, why: str, tmp_path: Path
) -> None:
    data = written(tmp_path, ROW)
    (one,) = (await ran(tmp_path, data, "CodeActAgent", bash(f"echo '{answer}' > {ANSWER}"), finish())).values()
    assert (one.outcome, one.score) == ("submitted", score), (one.why, one.details)
    assert one.details["why"] == why
