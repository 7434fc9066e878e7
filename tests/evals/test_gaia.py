"""GAIA: the official scorer's rule, attached files, and what cannot be scored here. The questions here are our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import DataError
from handiwork.evals.benchmarks.gaia import GAIA, answer_in, matches
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from tests.cli.program import bash, finish
from tests.evals.rollouts import rollout, serving
from tests.evals.runs import finished, no_status, script


def row(task: str, truth: str, file: str = "", level: int = 1) -> dict[str, object]:
    return {
        "task_id": task,
        "Question": f"What is asked in {task}?",
        "Level": level,
        "Final answer": truth,
        "file_name": file,
        "Annotator Metadata": {"Steps": "not for the agent"},
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = {
        "validation": [
            row("number", "1234.5"),
            row("list", "apple; 3, Pear-Tree", level=2),
            row("text", "St. John's"),
            row("attached", "7", "attached.csv", level=3),
            row("lost", "7", "lost.xlsx"),
        ],
        "test": [row("secret", "?")],
    }
    for split, found in rows.items():
        folder = tmp_path / "2023" / split
        folder.mkdir(parents=True)
        (folder / "metadata.jsonl").write_text("".join(json.dumps(one) + "\n" for one in found))
    (tmp_path / "2023/validation/attached.csv").write_text("a,b\n3,4\n")
    return tmp_path


def test_questions_are_grouped_by_level_and_hide_what_annotators_wrote(data: Path) -> None:
    instances = {one.id: one for one in GAIA().load(data, "validation")}
    assert {one.id: one.group for one in instances.values()} == {
        "number": "level 1",
        "list": "level 2",
        "text": "level 1",
        "attached": "level 3",
        "lost": "level 1",
    }
    for one in instances.values():
        assert one.row["Question"] in GAIA().instruction(one)
        assert "not for the agent" not in GAIA().instruction(one)


async def test_true_answers_score_and_others_do_not(data: Path) -> None:
    for one in GAIA().load(data, "validation"):
        truth = one.row["Final answer"]
        for said in (truth, f"<answer>{truth}</answer>", f"I looked it up.\nFINAL ANSWER: {truth}"):
            score = await GAIA().score(rollout(one, said))
            assert (score.value, score.answer) == (1.0, truth)
        for said in ("", "<answer></answer>", "FINAL ANSWER:", "<answer>0</answer>", "None", "?"):
            assert (await GAIA().score(rollout(one, said))).value == 0.0


def test_an_attached_file_is_copied_into_the_workspace_by_a_name_without_the_id(data: Path, tmp_path: Path) -> None:
    attached = next(one for one in GAIA().load(data, "validation") if one.id == "attached")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    GAIA().prepare(attached, workspace)
    assert (workspace / "attachment.csv").read_text() == "a,b\n3,4\n"
    assert "attachment.csv, in your working directory" in GAIA().instruction(attached)


def test_what_cannot_be_scored_is_skipped_with_the_reason(data: Path) -> None:
    skipped = {one.id: GAIA().skipped(one) for split in GAIA.splits for one in GAIA().load(data, split)}
    assert {task for task, why in skipped.items() if why} == {"lost", "secret"}
    assert "lost.xlsx is not beside metadata.jsonl" in skipped["lost"]
    assert "not published" in skipped["secret"]


@pytest.mark.parametrize(
    ("answer", "truth", "same"),
    [
        ("$1,234.50", "1234.5", True),
        ("12 %", "12", True),
        ("12 apples", "12", False),
        ("twelve", "12", False),
        ("12.0", "12", True),
        ("1,2", "12", True),  # a number's commas are taken out
        ("egalitarian", "Egalitarian", True),
        ("sea gull", "Seagull", True),
        ("St Johns", "St. John's", True),
        ("the gull", "gull", False),
        ("a, b", "a, b", True),
        ("A,B", "a, b", True),
        ("a; b", "a, b", True),
        ("a", "a, b", False),
        ("a, b, c", "a, b", False),
        ("b, a", "a, b", False),
        ("$3, x", "3, x", True),
        ("3, x.", "3, x", False),  # in a list punctuation counts
        ("wrong", "Infinity", False),  # the official scorer takes every wrong answer for infinite
        ("infinity", "Infinity", True),
        ("NaN", "nan", True),
    ],
)
def test_the_official_rule(answer: str, truth: str, same: bool) -> None:
    assert matches(answer, truth) is same


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_in_any_notation(number: float) -> None:
    assert matches(f"${number:,}", str(number))
    assert matches(f"{number!r}%", str(number))


@given(st.text())
def test_every_text_that_says_something_matches_itself(text: str) -> None:
    assert matches(text, text)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("FINAL ANSWER: 3\nno,\nFINAL ANSWER: 4", "4"),
        ("Final answer: red", "red"),
        ("<answer>FINAL ANSWER: 5</answer> I am sure", "5"),
        ("FINAL ANSWER: 1 <answer>2</answer>", "2"),
        ("just this", "just this"),
    ],
)
def test_where_the_answer_stands(said: str, answer: str) -> None:
    assert answer_in(said) == answer


def test_a_file_of_something_else_is_told(data: Path) -> None:
    (data / "2023/test/metadata.jsonl").write_text('{"task_id": "x"}\n')
    with pytest.raises(DataError, match="line 1 has no Question, Level, Final answer, file_name"):
        GAIA().load(data, "test")


@pytest.mark.slow
async def test_with_hosts_allowed_an_agent_finds_an_answer_on_the_web(data: Path, tmp_path: Path) -> None:
    page = tmp_path / "web/answer.txt"
    page.parent.mkdir()
    page.write_text("1,234.5")
    with serving(page.parent, "127.0.0.2") as address:
        host = address.removeprefix("http://")
        fetch = f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{address}/{page.name}\").read())'"
        model = script(tmp_path / "script", bash(fetch), finish("<answer>1,234.5</answer>"))
        conditions = Conditions(
            benchmark="gaia", split="validation", data=str(data), agent="CodeActAgent", model=model, user_model=model
        )
        seen: dict[bool, str] = {}
        for allowed in (False, True):
            chosen = conditions.model_copy(update={"allow_net": (host,) if allowed else ()})
            planned = await plan.new(GAIA(), chosen, InstanceSelection(ids=["number"]), 1, no_status)
            (result,) = (await finished(tmp_path / f"out-{allowed}", planned)).values()
            assert result.score == 1
            seen[allowed] = (tmp_path / f"out-{allowed}" / result.trajectory).read_text()
    assert "b'1,234.5'" in seen[True]
    assert "b'1,234.5'" not in seen[False]
