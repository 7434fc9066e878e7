"""The tables of the CodeNav paper, made of runs of its benchmarks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from handiwork.cli.commands.eval.commands import report_on
from handiwork.errors import Exit
from handiwork.evals.benchmarks.mnms.benchmark import grade
from handiwork.evals.reporting.codenav_paper import NoPaperRunError, tables_of
from handiwork.evals.running import manifest
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.manifest import Host, Manifest
from handiwork.evals.running.results import Result, Results
from handiwork.settings import SettingsError

Run = tuple[Manifest, Sequence[Result]]


def run(benchmark: str, split: str, *results: Result, agent: str = "CodeNavAgent", model: str = "m") -> Run:
    conditions = Conditions(benchmark=benchmark, split=split, data="/data", agent=agent, model=model, user_model=model)
    about = Manifest(
        conditions=conditions,
        metric="mean score",
        instances=tuple(dict.fromkeys(one.id for one in results)),
        trials=max(one.trial for one in results),
        **dict.fromkeys(("data_hash", "version", "commit", "code", "agent_code", "sampling", "began"), "x"),
        host=Host(system="x", python="3", cpus=2, memory=1),
    )
    return about, results


def answered(one: str, trial: int, score: float | None, steps: int, **details: object) -> Result:
    outcome = "submitted" if score is not None else "model"
    return Result(id=one, trial=trial, outcome=outcome, score=score, steps=steps, details=details)


def m3_run(split: str, *solved: int, model: str = "m") -> Run:
    """A run of four tasks with a trial for each number of tasks that were solved in it."""
    results = [
        answered(f"t{task}", trial, float(task < count), trial + 1, **{"as upstream": True})
        for trial, count in enumerate(solved, 1)
        for task in range(4)
    ]
    return run("m3tooleval", split, *results, model=model)


def planned(split: str, *plans: str, agent: str = "CodeNavAgent", model: str = "m") -> Run:
    """A run of a request for a caption, a trial with each plan."""
    scores = [grade([["image_captioning"]], f"a = {plan}(image='1.jpg')") for plan in plans]
    results = [answered("1", trial, score.value, 3, **score.details) for trial, score in enumerate(scores, 1)]
    return run("mnms", split, *results, agent=agent, model=model)


def api_run(split: str) -> Run:
    details = {"precision": 0.5, "recall": 1.0, "calls": 2, "accepted": 1}
    return run("apibank", split, answered("d", 1, 0.66, 5, **details), answered("lost", 1, None, 9))


def rows(runs: Sequence[Run], title: str) -> list[dict[str, str]]:
    table = next(table for table in tables_of(runs) if table.title.startswith(title))
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def test_methods_are_compared_with_mean_and_two_standard_deviations() -> None:
    runs = [m3_run("tool-use", 3, 4, 2), m3_run("code-use", 2), planned("code-use", "image_captioning", "tag")]
    assert rows([*runs, api_run("code-use")], "1.") == [
        {"": "m&m's, code-use", "precision": "50.0 ± 141.4", "recall": "50.0 ± 141.4", "f1": "50.0 ± 141.4"}
        | {"accuracy": "–", "steps": "3.0 ± 0.0"},
        {"": "M3ToolEval, tool-use", "precision": "–", "recall": "–", "f1": "–"}
        | {"accuracy": "75.0 ± 50.0", "steps": "3.0 ± 2.0"},
        {"": "M3ToolEval, code-use", "precision": "–", "recall": "–", "f1": "–"} | {"accuracy": "50.0", "steps": "2.0"},
        {
            "": "API-Bank, code-use",
            "precision": "50.0",
            "recall": "100.0",
            "f1": "66.0",
            "accuracy": "–",
            "steps": "5.0",
        },
    ]


def test_three_runs_of_one_trial_are_three_evaluations() -> None:
    apart = [m3_run("code-use", solved) for solved in (3, 4, 2)]
    assert rows(apart, "1.")[0]["accuracy"] == "75.0 ± 50.0"
    assert rows(apart, "The runs")[0]["evaluations"] == "3"
    assert rows(apart, "The runs")[0]["tasks"] == "4"


def test_the_ablations_have_their_rows() -> None:
    runs = [
        m3_run("file-paths", 2),
        m3_run("code-use", 4),
        *(planned(split, "image_captioning") for split in ("tool-prototypes", "no-description", "tool-names")),
        planned("code-use", "image_captioning"),
        planned("code-use", "tag", agent="/settings/prototypes.toml"),
        planned("code-use", "tag", model="other"),
    ]
    descriptions = rows(runs, "2.")
    names = [row["description"].partition(" ")[0] for row in descriptions]
    assert list(dict.fromkeys(names)) == ["no-description", "tool-names", "tool-prototypes", "code-use"]
    lengths = [int(row["length"].replace(",", "")) for row in descriptions[:3]]
    assert lengths == sorted(set(lengths))
    assert [(row["agent"], row["f1"]) for row in rows(runs, "3.")] == [
        ("CodeNavAgent", "100.0"),
        ("prototypes.toml", "0.0"),
        ("CodeNavAgent", "0.0"),
    ]
    assert [row["accuracy"] for row in rows(runs, "4.")] == ["50.0", "100.0"]
    assert [row["model"] for row in rows(runs, "5.")] == ["m", "m", "other"]


def test_a_run_without_a_place_is_refused() -> None:
    with pytest.raises(NoPaperRunError, match=r"a run of mint has no place .* mnms, m3tooleval, apibank have"):
        tables_of([run("mint", "gsm8k", answered("1", 1, 1.0, 1))])


def test_the_tables_are_shown_for_folders_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (about, results) in (("a", m3_run("tool-use", 3, 4, 2)), ("b", m3_run("code-use", 4))):
        out = tmp_path / name
        out.mkdir()
        manifest.write(out, about)
        for result in results:
            Results(out).add(result)
    folders = [tmp_path / "a", tmp_path / "b"]
    assert report_on(folders, "codenav", True) is Exit.FINISHED
    tables = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [table["title"][0] for table in tables] == ["1", "4", "T"]
    assert "75.0 ± 50.0" in tables[0]["rows"][0]
    report_on(folders, "codenav", False)
    assert "75.0 ± 50.0" in capsys.readouterr().out
    with pytest.raises(SettingsError, match="name one folder, or add --paper codenav"):
        report_on(folders, None, False)
