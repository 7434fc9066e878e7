"""Two runs beside each other: only what both measured is compared, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.cli.commands.eval import commands
from handiwork.evals.reporting.compare import CompareError, Comparison, Flip, compare, first_checked
from handiwork.evals.reporting.statistics import bootstrap, mcnemar_exact
from handiwork.evals.running import manifest
from handiwork.evals.running.results import Result, Results
from tests.evals.runs import ADDING, planned, sums


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


def test_each_group_has_its_own_difference_of_pairs() -> None:
    groups = {"a": "git", "b": "git", "c": "repair", "d": ""}
    before, after = (
        [result.model_copy(update={"group": groups[result.id]}) for result in run(scores)]
        for scores in ({"a": 0, "b": 1, "c": 1, "d": 1}, {"a": 1, "b": 1, "c": 0, "d": 1})
    )
    found = compare(before, after).groups
    assert {name: (one.before, one.after, one.difference.n) for name, one in found.items()} == {
        "git": (0.5, 1, 2),
        "repair": (1, 0, 1),
    }
    assert found["git"].difference.interval == bootstrap([1, 0])
    assert found["repair"].difference.interval is None


def checked(one: str, *trials: tuple[float | None, bool | None], calls: int = 1) -> list[Result]:
    """The trials of an instance: the score of each, and whether its visible check passed, if there is one."""
    return [
        Result(
            id=one,
            trial=number,
            score=score,
            outcome="model" if score is None else "submitted",
            details={} if check is None else {"check": check},
            calls=calls,
        )
        for number, (score, check) in enumerate(trials, 1)
    ]


@pytest.mark.parametrize(
    ("calls", "trial"), [(0, 1), (1, 1), (2, 2), (3, 3), (4, 3), (100, 3)], ids=lambda one: str(one)
)
def test_the_first_trial_that_passes_the_check_stands_for_as_many_as_there_are_calls(calls: int, trial: int) -> None:
    trials = checked("a", (1, False), (0, False), (0, True), (1, True))
    assert [one.trial for one in first_checked(trials[::-1], {"a": calls})] == [trial]


def test_without_a_check_that_passes_the_last_trial_stands() -> None:
    trials = [*checked("a", (1, None), (0, None)), *checked("b", (0, False), (None, None), (1, False))]
    assert [(one.id, one.trial) for one in first_checked(trials, {"a": 9, "b": 9})] == [("a", 2), ("b", 3)]


def test_a_trial_of_several_calls_needs_as_many() -> None:
    trials = checked("a", (0, False), (0, False), (0, False), calls=2)
    assert [[one.trial for one in first_checked(trials, {"a": calls})] for calls in (1, 3, 4)] == [[1], [1], [2]]


def test_several_trials_are_compared_with_as_many_calls_of_the_other_run() -> None:
    trials = [*checked("a", (0, False), (1, True)), *checked("b", (0, False), (1, True))]
    agent = [*checked("a", (1, True), calls=2), *checked("b", (1, True), calls=1)]
    there, back = compare(trials, agent).chosen, compare(agent, trials).chosen
    assert there is not None
    assert back is not None
    assert (there.before, there.after, there.difference.mean) == (0.5, 1, 0.5)
    assert (back.before, back.after, back.difference.mean) == (1, 0.5, -0.5)
    assert compare(agent, agent).chosen is None
    assert compare(checked("a", (0, None), (1, None)), agent).chosen is None


def test_the_calls_of_a_lost_trial_do_not_count() -> None:
    trials = checked("a", (0, False), (1, True))
    agent = [*checked("a", (1, True), calls=2), Result(id="a", trial=2, outcome="model", calls=0)]
    found = compare(trials, agent).chosen
    assert found is not None
    assert found.before == 1


def test_what_only_one_run_measured_is_named_and_not_compared() -> None:
    found = compare(run({"a": 1, "b": 0, "c": None}), run({"a": 1, "b": None, "c": 1, "d": 1}))
    assert (found.difference.n, found.before, found.after) == (1, 1, 1)
    assert (found.only_before, found.only_after) == (["b"], ["c", "d"])


def test_runs_with_nothing_in_common_are_refused() -> None:
    with pytest.raises(CompareError, match="no measured instance in common: compare two of one benchmark"):
        compare(run({"a": 1, "b": None}), run({"b": 1}))


async def folder(out: Path, *ids: str, benchmark: str = ADDING) -> Path:
    """The folder of a run on the data of these ids, which measured "a"."""
    manifest.write(sums(out, *ids), (await planned(out, "scripted:none", benchmark=benchmark)).manifest)
    Results(out).add(Result(id="a", outcome="submitted", score=1.0))
    return out


async def test_runs_of_two_benchmarks_are_refused_even_if_their_ids_coincide(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(Path(ADDING).read_text().replace('"adding"', '"multiplying"'))
    adding, multiplying = await folder(tmp_path / "1", "a"), await folder(tmp_path / "2", "a", benchmark=str(other))
    with pytest.raises(CompareError, match="are of two benchmarks, adding and multiplying: compare two of one"):
        commands.compare(adding, multiplying, as_json=False)


async def test_a_comparison_says_if_the_data_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, same, other = [
        await folder(tmp_path / name, *ids) for name, ids in {"1": ["a"], "2": ["a"], "3": ["a", "b"]}.items()
    ]
    for second, differs in ((same, False), (other, True)):
        commands.compare(one, second, as_json=False)
        assert ("The runs had different data" in capsys.readouterr().err) == differs
        assert ("The runs had different data" in (second / "comparison.md").read_text()) == differs


def test_the_largest_flips_come_first_then_by_name() -> None:
    found = compare(run({"t10": 0, "t9": 0, "t1": 0}), run({"t10": 1, "t9": 1, "t1": 0.5}))
    assert [flip.id for flip in found.better] == ["t9", "t10", "t1"]


def test_it_survives_json() -> None:
    found = compare(run({"a": 0, "b": 1, "c": 1}), run({"a": 1, "b": 0, "d": 0}))
    assert Comparison.model_validate_json(found.model_dump_json()) == found
