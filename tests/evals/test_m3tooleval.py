"""M3ToolEval: answers by the tools of the code base score, wrong ones do not, and no answer is in the workspace."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.m3tooleval.benchmark import M3ToolEval, correct, correct_upstream
from tests.evals.rollouts import instances, rollout

BENCHMARK = M3ToolEval()
SOLUTIONS = Path(__file__).with_name("m3_solutions.py")


def workspace_of(instance: Instance, folder: Path) -> Path:
    folder.mkdir()
    BENCHMARK.prepare(instance, folder)
    return folder


def solved(tasks: list[Instance], folder: Path) -> dict[str, str]:
    """The answers to the tasks by the tools, which run in a workspace: only the instructions are known there."""
    lines = "".join(json.dumps({name: one.row[name] for name in ("name", "instruction")}) + "\n" for one in tasks)
    workspace = workspace_of(tasks[0], folder)
    program = [sys.executable, "-c", f"import sys; sys.path[:0] = ['.']; exec(open({str(SOLUTIONS)!r}).read())"]
    done = subprocess.run(program, input=lines, cwd=workspace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row["answer"] for row in map(json.loads, done.stdout.splitlines())}


async def test_the_answers_of_the_tools_are_the_expected_ones(tmp_path: Path) -> None:
    tasks = instances(BENCHMARK)
    answers = solved(tasks, tmp_path / "workspace")
    scores = {one.id: await BENCHMARK.score(rollout(one, f"<answer>{answers[one.id]}</answer>")) for one in tasks}
    assert {name for name, score in scores.items() if score.value != 1} == set()
    assert len(scores) == len(tasks) > 50


async def test_the_expected_answers_score_and_those_of_other_tasks_do_not() -> None:
    tasks = instances(BENCHMARK)
    for one, other in zip(tasks, [*tasks[1:], tasks[0]], strict=True):
        truth, wrong = (task.row["expected_output"] for task in (one, other))
        score = await BENCHMARK.score(rollout(one, f"It is <answer>{truth}</answer>"))
        assert score.value == 1
        assert score.details["as upstream"]
        if wrong != truth:
            assert (await BENCHMARK.score(rollout(one, f"<answer>{wrong}</answer>"))).value == 0
        for nothing in ("", "<answer></answer>", "I cannot say."):
            assert (await BENCHMARK.score(rollout(one, nothing))).value == 0


def test_neither_the_expected_answers_nor_the_scorer_are_in_the_workspace(tmp_path: Path) -> None:
    task = next(one for one in instances(BENCHMARK) if one.id.endswith("match_phone_number_to_person_thomas_ramos"))
    files = [path for path in workspace_of(task, tmp_path / "workspace").rglob("*") if path.is_file()]
    assert {path.name for path in files} == {
        *("__init__.py", "browser.py", "dna_sequencer.py", "message_decoder.py", "trade_calculator.py"),
        *("travel_planner.py", "travel_tables.json", "web_pages.jsonl"),
    }
    text = "".join(path.read_text() for path in files)
    assert task.row["instruction"].strip() not in text
    assert "expected_output" not in text


@pytest.mark.parametrize(
    ("answer", "expected", "two_decimals", "right", "upstream"),
    [
        ("8100", 8100.0, False, True, True),
        ("8,100", 8100.0, False, False, False),
        ("[1, 2.0]", [1.0, 2.0], False, True, False),  # the missing "or" of upstream
        ("[1, 3]", [1.0, 2.0], False, False, False),
        ("(1, 2)", [1.0, 2.0], False, True, False),
        ("('A', 3)", ("A", 3), False, True, True),
        ("{'b': 2, 'a': 1.0}", {"a": 1, "b": 2}, False, True, False),
        ("{'a': 1}", {"a": 1, "b": 2}, False, False, False),
        ("False", False, False, True, True),
        ("0", False, False, False, True),
        ("True", 1, False, False, False),
        ("161", 161.25, False, False, True),  # upstream cuts the decimals off
        ("161.25", 161.25, False, True, True),
        ("380.42", 380.41999999999996, False, True, False),
        ("237.94", 237.942, True, True, False),
        ("237.94", 237.942, False, False, False),
        ("237.95", 237.942, True, False, False),
        ("'abc'", "abc", False, True, True),
        ("abc", "abc", False, True, True),
        ("ABC", "abc", False, False, False),
        ("nan", 1.0, False, False, False),
        ("(" * 5_000, 1.0, False, False, False),
    ],
)
def test_what_the_original_meant_and_what_its_code_does(
    answer: str, expected: object, two_decimals: bool, right: bool, upstream: bool
) -> None:
    assert correct(answer, expected, two_decimals) is right
    assert correct_upstream(answer, expected) is upstream


def test_the_splits_tell_more_or_less_of_the_tools(tmp_path: Path) -> None:
    texts = {split: BENCHMARK.instruction(instances(BENCHMARK, split)[0]) for split in BENCHMARK.splits}
    assert all("m3eval/travel_planner.py" in text for text in texts.values())
    assert "find hotels" in texts["code-use"]
    assert "find hotels" not in texts["file-paths"]
    assert "WebBrowser().scroll_down() -> str" in texts["tool-use"]
    tools = [line for line in texts["tool-use"].splitlines() if line.strip().startswith("Prototype: ")]
    assert "book_hotel(location: str, *preferences: str)" in "".join(tools)
    assert not any("_location(" in line or "self" in line for line in tools)
    assert len(tools) == 26


def test_the_tools_run_in_old_pythons(tmp_path: Path) -> None:
    """Sandboxes have any Python from 3.9 on."""
    package = workspace_of(instances(BENCHMARK)[0], tmp_path / "workspace") / "m3eval"
    for file in package.glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))
