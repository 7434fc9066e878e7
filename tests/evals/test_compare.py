"""Two runs beside each other: only what both measured is compared, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.evals.reporting.compare import CompareError, Comparison, Flip, compare
from handiwork.evals.reporting.statistics import bootstrap, mcnemar_exact
from handiwork.evals.running.results import Result


def run(scores: Mapping[str, float | None], trial: int = 1) -> list[Result]:
    return [
        Result(id=one, trial=trial, score=score, outcome="model" if score is None else "submitted")
        for one, score in scores.items()
    ]


SCORES = st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from([0.0, 1.0]), min_size=1)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0, 1), min_size=1))
def test_a_run_does_not_differ_from_itself(scores: dict[str, float]) -> None:
    found = compare(run(scores), run(dict(reversed(scores.items()))))
    assert (found.difference.mean, found.difference.interval) == (0, None)
    assert (found.better, found.worse, found.only_before, found.only_after) == ([], [], [], [])
    assert found.p in (None, 1)


def test_the_difference_is_of_pairs_and_its_interval_the_paired_bootstraps() -> None:
    found = compare(run({"a": 0, "b": 0, "c": 1, "d": 0.5}), run({"a": 1, "b": 0, "c": 0.5, "d": 0.5}))
    assert (found.before, found.after) == (0.375, 0.5)
    assert found.difference.mean == 0.125
    assert found.difference.interval == bootstrap([1, 0, -0.5, 0])
    assert found.p is None
    assert found.better == [Flip(id="a", before=0, after=1)]
    assert found.worse == [Flip(id="c", before=1, after=0.5)]


def test_right_and_wrong_answers_have_mcnemars_p() -> None:
    before = run(dict.fromkeys("abcdefg", 0.0) | {"x": 1.0, "y": 1.0})
    after = run(dict.fromkeys("abcdefg", 1.0) | {"x": 0.0, "y": 1.0})
    found = compare(before, after)
    assert found.p == mcnemar_exact(7, 1)
    assert [flip.id for flip in found.better] == list("abcdefg")
    assert [flip.id for flip in found.worse] == ["x"]


@settings(deadline=None, max_examples=30)
@given(SCORES, SCORES)
def test_turning_the_runs_round_turns_everything_round(first: dict[str, float], second: dict[str, float]) -> None:
    if not first.keys() & second.keys():
        return
    there, back = compare(run(first), run(second)), compare(run(second), run(first))
    assert back.difference.mean == -there.difference.mean
    assert back.p == there.p
    assert [flip.id for flip in back.better] == [flip.id for flip in there.worse]
    assert back.only_before == there.only_after
    assert len(there.better) + len(there.worse) <= there.difference.n == len(first.keys() & second.keys())


def test_trials_are_averaged() -> None:
    before = [*run({"a": 1, "b": 0}), *run({"a": 0, "b": 0}, trial=2)]
    found = compare(before, run({"a": 1, "b": 0}))
    assert (found.before, found.after, found.p) == (0.25, 0.5, None)
    assert found.better == [Flip(id="a", before=0.5, after=1)]


def test_what_only_one_run_measured_is_named_and_not_compared() -> None:
    found = compare(run({"a": 1, "b": 0, "c": None}), run({"a": 1, "b": None, "c": 1, "d": 1}))
    assert (found.difference.n, found.before, found.after) == (1, 1, 1)
    assert (found.only_before, found.only_after) == (["b"], ["c", "d"])


def test_runs_with_nothing_in_common_are_refused() -> None:
    with pytest.raises(CompareError, match="no measured instance in common: compare two of one benchmark"):
        compare(run({"a": 1, "b": None}), run({"b": 1}))


def test_the_largest_flips_come_first_then_by_name() -> None:
    found = compare(run({"t10": 0, "t9": 0, "t1": 0}), run({"t10": 1, "t9": 1, "t1": 0.5}))
    assert [flip.id for flip in found.better] == ["t9", "t10", "t1"]


def test_it_survives_json() -> None:
    found = compare(run({"a": 0, "b": 1, "c": 1}), run({"a": 1, "b": 0, "d": 0}))
    assert Comparison.model_validate_json(found.model_dump_json()) == found
