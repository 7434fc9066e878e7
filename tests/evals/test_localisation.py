"""The localisation benchmark: its questions, the paths of answers, and both agents on two real repositories."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.swebench.localisation import Localisation, NoSearchAgent, changed_files, paths_in
from handiwork.evals.registry import find
from handiwork.evals.reporting.compare import compare
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result
from handiwork.events.action import CodeSearchAction
from handiwork.events.base import Action
from handiwork.events.codec import from_json
from tests.cli.program import finish
from tests.evals.rollouts import folder, instances
from tests.evals.runs import finished, no_status, script

FLASK, SEABORN = "pallets__flask-4992", "mwaskom__seaborn-3407"
LOCALISATION = Localisation()


def test_the_first_twenty_questions_that_can_run_are_of_nine_repositories() -> None:
    questions = [one for one in instances(LOCALISATION) if not LOCALISATION.skipped(one)][:20]
    assert {one.id for one in questions} >= {FLASK, SEABORN}
    assert len({one.group for one in questions}) == 9
    assert max(sum(one.group == other.group for one in questions) for other in questions) <= 3
    assert [one.id for one in instances(LOCALISATION)] == [one.id for one in instances(LOCALISATION)]
    for one in questions:
        (file,) = changed_files(one.row["patch"])
        assert one.row["problem_statement"].strip() in LOCALISATION.instruction(one)
        assert file.endswith(".py")


def test_an_instance_whose_repository_is_missing_says_so() -> None:
    missing = next(one for one in instances(LOCALISATION) if one.group == "django/django")
    assert LOCALISATION.skipped(missing) == missing.row["recipe"]["note"]
    without_recipe = replace(missing, row={**missing.row, "recipe": {}})
    assert LOCALISATION.skipped(without_recipe) == "the data folder has no repository django/django"


def test_an_instance_whose_base_commit_the_repository_lacks_says_so() -> None:
    known = next(one for one in instances(LOCALISATION) if one.id == FLASK)
    other = Instance("pallets__flask-1", {**known.row, "base_commit": "0" * 40})
    assert "has neither of refs/heads/pallets__flask-1" in LOCALISATION.skipped(other)


def test_the_paths_of_an_answer_are_relative_whatever_their_form() -> None:
    answer = "1. `src/a.py`\n- ./src/b.py\n\n/project/src/c.py\n2) src/a.py\nd.py"
    assert paths_in(answer, "/project") == ["src/a.py", "src/b.py", "src/c.py", "d.py"]
    assert paths_in("`table.join` is in src/a.py, and d.py calls it.", "/project") == ["src/a.py", "d.py"]


def test_the_workspace_is_the_repository_with_one_commit_and_without_the_repair(tmp_path: Path) -> None:
    instance = next(one for one in instances(LOCALISATION) if one.id == FLASK)
    LOCALISATION.prepare(instance, tmp_path)
    assert (tmp_path / "src/flask/config.py").is_file()
    log = subprocess.run(["git", "log", "--oneline"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert len(log.splitlines()) == 1
    applies = subprocess.run(
        ["git", "apply", "--check"], cwd=tmp_path, input=instance.row["patch"], text=True, check=False
    )
    assert applies.returncode == 0


async def ran(out: Path, agent: str, model: str) -> dict[str, Result]:
    benchmark = find("localisation")
    conditions = Conditions(
        benchmark="localisation",
        split="lite",
        data=str(folder(benchmark)),
        agent=agent,
        model=model,
        user_model="",
        limits=benchmark.limits,
    )
    planned = await plan.new(benchmark, conditions, InstanceSelection(ids=[FLASK, SEABORN]), 1, no_status)
    return {result.id: result for result in (await finished(out, planned)).values()}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_both_agents_answer_and_are_compared_by_pairs(tmp_path: Path) -> None:
    search = {"tool_calls": [{"name": "search_code", "arguments": {"query": "load a configuration from a file"}}]}
    right = finish("<answer>\n./src/flask/config.py\nseaborn/axisgrid.py\n</answer>")
    late = finish("<answer>a.py\nb.py\nc.py\nd.py\nseaborn/axisgrid.py\nsrc/flask/config.py</answer>")
    name = f"{NoSearchAgent.__module__}:{NoSearchAgent.__name__}"
    found = await ran(tmp_path / "with", "CodeActAgent", script(tmp_path / "searches", search, right))
    other = await ran(tmp_path / "without", name, script(tmp_path / "guesses", search, late))
    assert {one.id: one.score for one in found.values()} == {FLASK: 1.0, SEABORN: 1.0}
    assert {one.id: one.score for one in other.values()} == {FLASK: 0.0, SEABORN: 1.0}

    def events(run: str, result: Result) -> list[object]:
        return [from_json(line) for line in (tmp_path / run / result.trajectory).read_text().splitlines()]

    (action,) = [one for one in events("with", found[FLASK]) if isinstance(one, CodeSearchAction)]
    answer = next(one for one in events("with", found[FLASK]) if getattr(one, "cause", None) == action.id)
    assert "src/flask/config.py" in json.dumps(getattr(answer, "content", ""))
    without = events("without", other[FLASK])
    assert not any(isinstance(one, CodeSearchAction) for one in without)
    assert any("search_code" in getattr(one, "content", "") for one in without if not isinstance(one, Action))
    compared = compare(list(other.values()), list(found.values()))
    assert (compared.before, compared.after, [flip.id for flip in compared.better]) == (0.5, 1.0, [FLASK])
