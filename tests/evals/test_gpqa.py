"""GPQA: the letter of the right choice, in an order that is the same in every run. The questions here are our own."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import DataError, Instance
from handiwork.evals.benchmarks.gpqa import COLUMNS, GPQA, choices, letter_in
from handiwork.evals.scoring.data import get
from tests.evals.rollouts import rejected, rollout

ROWS = [
    ["rec1", "What is 2 + 2?\n(In decimal.)", "4", "3", "5", "22", "Mathematics"],
    ["rec2", 'Which "metal" is liquid, at 20 °C?', "mercury", "iron, cast", "gold", "tin", "Chemistry"],
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split in GPQA.splits:
        with (tmp_path / f"gpqa_{split}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[*COLUMNS, "High-level domain"], *ROWS])
    return tmp_path


def test_questions_are_read_from_the_csv_file_by_domain(data: Path) -> None:
    instances = GPQA().load(data, "diamond")
    assert [(one.id, one.group) for one in instances] == [("rec1", "Mathematics"), ("rec2", "Chemistry")]
    shown = GPQA().instruction(instances[1])
    assert 'Which "metal" is liquid, at 20 °C?' in shown
    assert all(f") {choice}\n" in shown for choice in ROWS[1][2:6])


@pytest.mark.parametrize(
    "form", ["{}", "<answer>{}</answer>", "The correct answer is ({}).", "<answer>{}) it</answer>"]
)
async def test_the_right_letter_scores_and_no_other(data: Path, form: str) -> None:
    for one in GPQA().load(data, "main"):
        for letter, choice in choices(one.row).items():
            score = await GPQA().score(rollout(one, form.format(letter)))
            assert (score.value, score.answer) == (float(choice == one.row["Correct Answer"]), letter)


@pytest.mark.parametrize(
    "said", ["", "I cannot tell.", "<answer></answer>", "<answer>E</answer>", "A proton, I think."]
)
async def test_an_answer_without_a_letter_is_wrong_and_never_drawn(data: Path, said: str) -> None:
    for one in GPQA().load(data, "extended"):
        score = await GPQA().score(rollout(one, said))
        assert (score.value, score.answer) == (0.0, "")


async def test_a_refusal_names_no_choice(data: Path) -> None:
    for one in GPQA().load(data, "main"):
        for letter in choices(one.row):
            score = await GPQA().score(rejected(one, f"I have no data to decide for ({letter})."))
            assert (score.value, score.answer) == (0.0, "")


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("b", "B"),
        ("**C**", "C"),
        ("(D)", "D"),
        ("B. mercury", "B"),
        ("Not (A) as I thought; the answer is (C)", "C"),
        ("(A) fits at first, but the answer is (C)", "C"),
        ("A: no.\nB: yes.\nThe answer is B", "B"),
        ("Final answer: D because it is liquid", "D"),
        ("So it must be (B)!", "B"),
        ("The answer is (C). Answer (A) forgets the spin.", "C"),
        ("Answer (A) forgets the spin, so it is answer (C)", "C"),
        ("the answer is a proton", ""),
    ],
)
def test_ways_to_name_a_letter(said: str, letter: str) -> None:
    assert letter_in(said) == letter


@given(st.text(min_size=1), st.lists(st.text(min_size=1), min_size=4, max_size=4))
def test_the_order_depends_on_the_record_alone(record: str, texts: list[str]) -> None:
    row = dict(zip(COLUMNS, [record, "?", *texts], strict=True))
    shown = choices(row)
    assert shown == choices(dict(row))
    assert sorted(shown.values()) == sorted(text.strip() for text in texts)


def test_the_right_choice_is_not_always_at_the_same_place() -> None:
    rows = [dict(zip(COLUMNS, [f"rec{number}", "?", "right", "1", "2", "3"], strict=True)) for number in range(400)]
    places = [next(letter for letter, choice in choices(row).items() if choice == "right") for row in rows]
    assert all(70 < places.count(letter) < 130 for letter in "ABCD")


def test_another_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "gpqa_main.csv").write_text("Question,Answer\nWhat?,That\n")
    with pytest.raises(DataError, match="no column Correct Answer, Incorrect Answer 1"):
        GPQA().load(tmp_path, "main")


async def test_what_must_be_done_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HANDIWORK_BENCHDATA", str(tmp_path))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(DataError, match=r"Accept the terms .* set HF_TOKEN"):
        await get(GPQA(), "main", None, lambda _: None)


def test_an_instance_keeps_its_upstream_record(data: Path) -> None:
    assert GPQA().load(data, "main")[0] == Instance(
        "rec1", dict(zip([*COLUMNS, "High-level domain"], ROWS[0], strict=True)), "Mathematics"
    )
