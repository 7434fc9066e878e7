"""ProofWriter: the letter of an answer by Logic-LM's rule, on the real questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import DataError, Instance
from handiwork.evals.benchmarks.proofwriter.benchmark import FILE, LETTERS, PHRASES, ProofWriter, letter_in
from tests.evals.rollouts import instances, needs_benchdata, rejected, rollout

PROOFWRITER = ProofWriter()


@needs_benchdata
async def test_the_right_letter_scores_in_every_form_and_a_wrong_or_no_answer_does_not() -> None:
    found = instances(PROOFWRITER)
    assert found
    for instance in found:
        right, options = instance.row["answer"], instance.row["options"]
        option = next(one for one in options if one.startswith(right))
        wrong = "B" if right == "A" else "A"
        for words in (f"<answer>{right}</answer>", right, option, f"So the correct answer is {option}"):
            assert (await PROOFWRITER.score(rollout(instance, words))).value == 1, words
        for words in ("", f"<answer>{wrong}</answer>", "I do not know.", "<answer></answer>"):
            assert (await PROOFWRITER.score(rollout(instance, words))).value == 0, words


@needs_benchdata
def test_an_agent_is_told_facts_question_and_options_and_never_the_answer() -> None:
    for instance in instances(PROOFWRITER)[:20]:
        asked = PROOFWRITER.instruction(instance)
        assert all(part in asked for part in (instance.row["context"], instance.row["question"], "C) Unknown"))
        assert "<answer>C</answer>" in asked
        assert instance.group in {"AttNeg", "AttNoneg", "RelNeg", "RelNoneg"}


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B) False", "B"),
        ("  C.", "C"),
        ("It follows, so the correct option is A) True", "A"),
        ("Thus, the answer is C) Unknown", "C"),
        ("The correct option is: C", "C"),
        ("A is possible.\nThe correct option is: B) False", "B"),
        ("The correct option is: A. No.\nThe correct option is: B", "B"),
        ("the correct answer is not A, and the correct option is B", "B"),  # the phrases have an order
        ("Thus, the answer is not clear", ""),
        ("(A)", ""),
        ("a", ""),
        ("", ""),
    ],
)
def test_how_an_answer_names_a_letter(answer: str, letter: str) -> None:
    assert letter_in(answer) == letter


async def test_a_refusal_names_no_option() -> None:
    instance = Instance("1", {"answer": "C"})
    assert (await PROOFWRITER.score(rollout(instance, "Cannot be derived."))).value == 1
    assert (await PROOFWRITER.score(rejected(instance, "Cannot be derived."))).value == 0


@given(st.sampled_from(LETTERS), st.text(), st.sampled_from(PHRASES), st.sampled_from(["", "well, ", "so "]))
def test_a_letter_is_found_at_the_start_or_after_a_phrase_whatever_follows(
    letter: str, rest: str, phrase: str, before: str
) -> None:
    assert letter_in(letter + rest) == letter
    if not any(one in rest for one in PHRASES):
        assert letter_in(f"{before}{phrase} {letter}{rest}") == letter


def test_another_file_is_not_taken_for_the_questions(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps([{"id": "1", "text": "Something else."}]))
    with pytest.raises(DataError, match="is it Logic-LM's file"):
        PROOFWRITER.load(tmp_path, "dev")
