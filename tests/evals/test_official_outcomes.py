"""Answers are scored as the official scorers do: their outcomes on generated answers, recorded by running their code.

official_outcomes.json names the code of each benchmark, its commit and its licence.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals.benchmarks import gaia, gpqa, toolqa
from handiwork.evals.benchmarks.gorilla_apibench import answer_in, find_entry, read_database
from handiwork.evals.benchmarks.mint.benchmark import correct, upstream_choice
from handiwork.evals.benchmarks.proofwriter.benchmark import letter_in
from handiwork.evals.benchmarks.webarena.evaluators import string_match, url_match

OFFICIAL: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("official_outcomes.json").read_text())

MILDER = {"sqrt(9)"}
"""Answers to TheoremQA that count here and not upstream, which evaluates them without the names of ``math``."""


def outcomes(benchmark: str) -> list[list[Any]]:
    found = OFFICIAL[benchmark]["outcomes"]
    assert len(found) > 90
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


def test_mints_second_rate_for_mmlu_is_upstreams() -> None:
    for prompt, reference, answer, right in outcomes("mmlu"):
        assert upstream_choice({"prompt": prompt, "reference": reference}, answer) == right, (reference, answer)


def test_gpqas_letters_are_the_authors_unless_they_stand_without_parentheses() -> None:
    differing = [answer for answer, letter in outcomes("gpqa") if gpqa.letter_in(answer) != letter]
    assert differing
    assert [answer for answer in differing if re.search(r"\([A-D]\)", answer)] == []


def test_gaias_answers_are_right_where_they_are_for_the_leaderboard() -> None:
    assert [one for one in outcomes("gaia") if gaia.matches(one[0], one[1]) != one[2]] == []


def test_toolqas_answers_are_right_where_they_are_upstream() -> None:
    assert [one for one in outcomes("toolqa") if (toolqa.normalise(one[0]) == toolqa.normalise(one[1])) != one[2]] == []


async def test_webarenas_answers_and_addresses_have_upstreams_scores() -> None:
    async def no_model(prompt: str) -> str:
        raise AssertionError(f"a model is asked: {prompt}")

    for answer, references, score in outcomes("webarena"):
        task = {"intent": "", "eval": {"reference_answers": references}}
        assert await string_match(task, answer, no_model) == score, (answer, references)
    for address, reference, score in outcomes("webarena addresses"):
        assert url_match({"reference_url": reference}, address) == score, (address, reference)


def test_gorillas_calls_match_the_entries_that_they_match_upstream(tmp_path: Path) -> None:
    databases = {hub: tmp_path / f"{hub}.jsonl" for hub in OFFICIAL["gorilla"]["databases"]}
    for hub, calls in OFFICIAL["gorilla"]["databases"].items():
        databases[hub].write_text("".join(json.dumps({"api_call": call, "domain": ""}) + "\n" for call in calls))
    for hub, answer, api in outcomes("gorilla"):
        entry = find_entry(answer_in(answer), read_database(str(databases[hub]), hub))
        assert (entry.call if entry else "") == api, (hub, answer)
