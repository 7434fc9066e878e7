"""Answers are scored as the official scorers do: their outcomes on generated answers, recorded by running their code.

official_outcomes.json names the code of each benchmark, its commit and its licence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals.benchmarks.mint.benchmark import correct
from handiwork.evals.benchmarks.proofwriter.benchmark import letter_in

OFFICIAL: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("official_outcomes.json").read_text())

MILDER = {"sqrt(9)"}
"""Answers to TheoremQA that count here and not upstream, which evaluates them without the names of ``math``."""


def outcomes(benchmark: str) -> list[list[Any]]:
    found = OFFICIAL[benchmark]["outcomes"]
    assert len(found) > 100
    return found


def test_proofwriters_letters_are_logic_lms() -> None:
    assert [answer for answer, letter in outcomes("proofwriter") if letter_in(answer) != letter] == []


@pytest.mark.parametrize("which", ["gsm8k", "theoremqa"])
def test_mints_answers_are_right_where_they_are_upstream(which: str) -> None:
    differing = {
        answer
        for reference, answer, right in outcomes(which)
        if correct({"set": which, "reference": reference, "prompt": ""}, answer) != right
    }
    assert differing == (MILDER if which == "theoremqa" else set())
