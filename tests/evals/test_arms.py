"""The arms that need no model: what they score on every benchmark, and how a report shows it beside an agent's run."""

from __future__ import annotations

import csv
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from handiwork.cli.commands.eval.commands import EvalRequest, conditions_of
from handiwork.evals.benchmark import Benchmark, DataError
from handiwork.evals.benchmarks.gpqa import COLUMNS
from handiwork.evals.registry import all_of, find
from handiwork.evals.reporting import report, tables
from handiwork.evals.reporting.arms import beside, flaky
from handiwork.evals.reporting.summary import Summary, summarise
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.arms import ARMS, EMPTY, ORACLE, has_references
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result, Results
from handiwork.evals.scoring.data import missing
from tests.evals.rollouts import bird_excerpt, folder
from tests.evals.runs import ADDING, finished, no_status, script, sums

EMPTY_SCORES: Mapping[tuple[str, str], Mapping[str, float]] = {
    # The bug of this task passes its tests.
    ("humanevalfix", "js"): {"JavaScript/10": 1.0},
}
"""Instances on which the empty arm scores more than 0, as the benchmark's docstring says."""

LEAST: Mapping[tuple[str, str], float] = {("gorilla_apibench", "huggingface"): 861 / 904}
"""The score of the oracle if it is less than 1, as the benchmark's docstring says."""

BY_CHANCE = {"agentbench_os"}
"""Benchmarks whose docstring says that the oracle scores 1 on some instances in some runs only."""

SPLITS = [(one.name, split) for one in all_of() for split in one.splits]
SAMPLE = {
    "agentbench_os": ["std-003-ac-00000", "std-004-N11-00000"],
    "localisation": ["pallets__flask-4992", "mwaskom__seaborn-3407"],
    "swebench": ["pallets__flask-4992"],
}
"""The instances of test-slow, for benchmarks of which not any two will do."""


async def ran(
    out: Path,
    agent: str,
    name: str,
    choice: InstanceSelection,
    data: Path,
    *,
    model: str = "",
    split: str = "",
    trials: int = 1,
) -> list[Result]:
    """The results of an arm, or of an agent with a model."""
    benchmark = find(name)
    conditions = Conditions(
        benchmark=name,
        split=split or benchmark.splits[0],
        data=str(data),
        agent=agent,
        model=model,
        user_model="",
        limits=benchmark.limits,
    )
    return list((await finished(out, await plan.new(benchmark, conditions, choice, trials, no_status))).values())


def summary_of(out: Path) -> Summary:
    """The summary of a run, as its report has it."""
    run, results = manifest.read(out), list(Results(out).by_key.values())
    summary = summarise(run.facts, results, {}, beside(out, run))
    report.write(out, summary, results)
    return summary


@pytest.mark.usefixtures("new_user")
def test_an_arm_is_judged_by_the_model_of_the_run() -> None:
    asked = EvalRequest(ADDING, None, None, None, None, 1, None, None, None, 60.0, None)
    _, conditions = conditions_of(asked, {"agent": EMPTY, "model": "openai:gpt-5", "max_iterations": None})
    assert (conditions.model, conditions.user_model) == ("", "openai:gpt-5")


async def test_a_report_shows_what_the_arms_scored_on_the_runs_own_instances(tmp_path: Path) -> None:
    data, every, one = sums(tmp_path / "data", "a", "b"), InstanceSelection(), InstanceSelection(ids=["a"])
    for arm in ARMS:
        await ran(tmp_path / arm, arm, ADDING, every, data)
    model = script(tmp_path / "script")
    await ran(tmp_path / "agent", "CodeActAgent", ADDING, one, data, model=model)
    shares = summary_of(tmp_path / "agent").arms
    assert [(one.arm, one.score.mean, one.score.n, one.wrong, one.flaky) for one in shares] == [
        (ORACLE, 1.0, 1, {}, {}),
        (EMPTY, 0.0, 1, {}, {}),
    ]
    text = (tmp_path / "agent/report.md").read_text()
    assert "| oracle | 100.0 % |" in text
    assert "| empty | 0.0 % |" in text
    assert "nothing shows that its benchmark tells right from wrong" not in text
    # An arm on other data does not count.
    (data / "sums.jsonl").write_text((data / "sums.jsonl").read_text().replace('"b": 3', '"b": 4'))
    await ran(tmp_path / "other", "CodeActAgent", ADDING, one, data, model=model)
    assert summary_of(tmp_path / "other").arms == []
    assert "nothing shows that its benchmark tells right from wrong" in (tmp_path / "other/report.md").read_text()


async def test_instances_whose_reference_solution_scores_by_chance_are_listed_and_marked(tmp_path: Path) -> None:
    data, every = sums(tmp_path / "data", "flaky-one", "steady"), InstanceSelection()
    await ran(tmp_path / "gold", ORACLE, ADDING, every, data, trials=2)
    await ran(tmp_path / "agent", "CodeActAgent", ADDING, every, data, model=script(tmp_path / "script"))
    for name, rollouts in ("gold", 2), ("agent", 1):
        (oracle,) = summary_of(tmp_path / name).arms
        assert (oracle.flaky, oracle.wrong) == ({"flaky-one": "1 of 2"}, {"flaky-one": 0.5})
        text, page = ((tmp_path / name / f"report.{kind}").read_text() for kind in ("md", "html"))
        assert "| flaky-one | 1 of 2 trials |" in text
        assert "The arm oracle scores less than 1 on 1 of these instances: flaky-one." in text
        assert re.findall(r">([\w-]+)</a> \(flaky\)", page) == ["flaky-one"] * rollouts


def test_the_advice_to_run_the_arms_names_the_split_as_arms_on_another_do_not_count() -> None:
    run = {"benchmark": "mint", "split": "math", "agent": "CodeActAgent", "instances": 1, "trials": 1}
    (note,) = tables.arm_notes(summarise(run, [], {}))
    assert "Run mint with --agent empty, and with --agent oracle if it has" in note
    assert "on --split math with" in note


def test_an_instance_that_its_own_set_up_calls_unfit_in_some_trials_is_flaky() -> None:
    found = [
        Result(id="a", outcome="submitted", score=1.0),
        Result(id="a", trial=2, outcome="unfit"),
        Result(id="b", outcome="submitted", score=1.0),
        Result(id="b", trial=2, outcome="sandbox"),
        Result(id="c", outcome="unfit"),
        Result(id="c", trial=2, outcome="unfit"),
    ]
    assert flaky(found) == {"a": "1 of 2"}


@pytest.mark.parametrize("benchmark", all_of(), ids=lambda one: one.name)
async def test_a_benchmark_has_reference_solutions_or_its_docstring_says_why_not(benchmark: Benchmark) -> None:
    if has_references(benchmark):
        return
    module = inspect.getmodule(type(benchmark))
    assert module is not None
    assert "no reference solutions" in (module.__doc__ or "").replace("\n", " ")
    conditions = Conditions(
        benchmark=benchmark.name, split=benchmark.splits[0], data="", agent=ORACLE, model="", user_model=""
    )
    with pytest.raises(DataError, match="has no reference solutions, as its docstring explains"):
        await plan.new(benchmark, conditions, InstanceSelection(), 1, no_status)


def data_of(benchmark: Benchmark, split: str, place: Path) -> Path:
    """The data of a split; skips the test without them."""
    match benchmark.name:
        case "bird":
            return bird_excerpt(place)
        case "gaia":
            rows = [
                {
                    "task_id": f"{n}-4f2c-91aa",
                    "Question": "Who?",
                    "Level": 1,
                    "Final answer": f"Lovelace the {n}.",
                    "file_name": "",
                }
                for n in range(2)
            ]
            (place / "2023" / split).mkdir(parents=True)
            (place / "2023" / split / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            return place
        case "gpqa":
            place.mkdir()
            with (place / f"gpqa_{split}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(
                    [
                        COLUMNS,
                        *([f"rec-of-{n}", "Which metal?", "mercury, liquid", "iron", "gold", "tin"] for n in range(2)),
                    ]
                )
            return place
        case _:
            pass
    data = folder(benchmark) if benchmark.own_data is None else benchmark.own_data
    if missing(benchmark, split, data):
        pytest.skip(f"there are no data of {benchmark.name}, {split}")
    reasons = [benchmark.skipped(one) for one in benchmark.load(data, split)]
    if all(reasons):
        pytest.skip(f"no instance can run here: {reasons[0]}")
    return data


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [one.name for one in all_of()])
async def test_the_arms_score_1_and_0(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = {"eda": "things-dev"}.get(name, find(name).splits[0])
    await arms_score(name, split, InstanceSelection(2, SAMPLE.get(name)), tmp_path, monkeypatch)


@pytest.mark.campaign
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize(("name", "split"), SPLITS)
async def test_the_arms_score_1_and_0_on_every_instance(
    name: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await arms_score(name, split, InstanceSelection(), tmp_path, monkeypatch)


async def arms_score(
    name: str, split: str, choice: InstanceSelection, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = find(name)
    data = data_of(benchmark, split, place / "data")
    if name == "swebench":  # keeps the packages of this machine's other Pythons out of the sandboxes
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for arm in ARMS:
        if arm == ORACLE and not has_references(benchmark):
            continue
        results = await ran(place / arm, arm, name, choice, data, split=split)
        assert {one.outcome for one in results} <= {"submitted", "gave up", "unfit"}, results
        scores = {one.id: one.score for one in results if one.score is not None}
        assert scores
        if arm == EMPTY:
            known = {one: score for one, score in EMPTY_SCORES.get((name, split), {}).items() if one in scores}
            assert {one: score for one, score in scores.items() if score} == known
        elif name not in BY_CHANCE:
            right = sum(score for score in scores.values()) / len(scores)
            assert right >= LEAST.get((name, split), 1.0), scores
