"""What a summary says of results: means, intervals, pass@k, the taxonomy, and what does not count."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.evals.reporting.statistics import bootstrap, wilson
from handiwork.evals.reporting.summary import Ending, Summary, estimate, natural, summarise
from handiwork.evals.running.results import NOT_MEASURED, Outcome, Result
from handiwork.events.record import Usage


def result(one: str, score: float | None, trial: int = 1, outcome: Outcome = "submitted", **more: Any) -> Result:
    return Result(id=one, trial=trial, score=score, outcome=outcome, **more)


def summary(*results: Result, **run: Any) -> Summary:
    trials = max((one.trial for one in results), default=1)
    wanted = len({one.id for one in results})
    return summarise({"instances": wanted, "trials": trials, **run}, results, {})


def test_scores_of_0_and_1_with_one_trial_each_have_wilsons_interval() -> None:
    found = summary(result("a", 1), result("b", 0), result("c", 1)).score
    assert found is not None
    assert (found.mean, found.n, found.method) == (pytest.approx(2 / 3), 3, "Wilson")
    assert found.interval == wilson(2, 3)


def test_a_score_between_0_and_1_is_no_wrong_answer() -> None:
    """EDA's games are won for less the later they are."""
    found = summary(result("a", 0.9), result("b", 1), result("c", 0)).endings
    assert set(found) == {"right answer", "answer with a part of the score", "wrong answer"}


def test_trials_are_averaged_before_instances_are_resampled() -> None:
    """Each instance weighs the same, however many of its trials were measured."""
    found = summary(result("a", 1), result("a", 1, 2), result("a", 1, 3), result("b", 0)).score
    assert found is not None
    assert (found.mean, found.n, found.method) == (0.5, 2, "bootstrap")
    assert found.interval == bootstrap([1.0, 0.0])


def test_scores_between_0_and_1_are_resampled() -> None:
    found = summary(result("a", 0.25), result("b", 0.5)).score
    assert found is not None
    assert (found.mean, found.interval) == (0.375, bootstrap([0.25, 0.5]))


def test_scores_that_are_all_alike_have_no_bootstrap_interval() -> None:
    found = summary(result("a", 0.5), result("b", 0.5)).score
    assert found is not None
    assert (found.mean, found.interval) == (0.5, None)


def test_pass_at_k_goes_to_the_number_of_trials() -> None:
    results = [result("a", score, trial) for trial, score in enumerate((1, 0, 0), 1)]
    results += [result("b", 0, trial) for trial in (1, 2, 3)]
    assert summary(*results).pass_at == pytest.approx({1: 1 / 6, 2: 1 / 3, 3: 1 / 2})


def test_pass_at_k_leaves_out_instances_with_fewer_measured_trials() -> None:
    spoilt = result("b", None, 2, "sandbox")
    assert summary(result("a", 1), result("a", 0, 2), result("b", 0), spoilt).pass_at == {1: 0.25, 2: 1.0}


def test_graded_scores_have_no_pass_at_k() -> None:
    assert summary(result("a", 0.5), result("b", 1)).pass_at == {}


@pytest.mark.parametrize("outcome", sorted(NOT_MEASURED))
def test_what_the_agent_is_not_to_blame_for_is_in_no_mean(outcome: Outcome) -> None:
    found = summary(result("a", 1), result("b", 0), result("c", None, outcome=outcome))
    assert found.score == estimate({"a": [1], "b": [0]})
    assert (found.wanted, found.measured, found.rollouts) == (3, 2, 3)
    assert found.endings[outcome] == Ending(rollouts=1, score=None)


def test_failures_are_counted_apart_with_the_score_if_they_were_the_agents() -> None:
    broken = [result("b", None, outcome="model"), result("c", None, outcome="platform")]
    found = summary(result("a", 1), *broken, result("d", None, outcome="grader"))
    assert found.failures == {"infrastructure": 2, "grader": 1}
    assert found.if_failed == estimate({"a": [1], "b": [0], "c": [0], "d": [0]})
    assert summary(result("a", 1)).if_failed is None


def test_what_the_runs_end_cut_off_is_no_failure() -> None:
    found = summary(result("a", 1), result("b", None, outcome="stopped"))
    assert (found.failures, found.if_failed) == ({}, None)


def test_a_submitted_answer_is_right_or_wrong_and_other_endings_keep_their_score() -> None:
    found = summary(
        result("a", 1),
        result("b", 0.5),
        result("c", 0),
        result("d", 1, outcome="limit"),
        result("e", 0, outcome="limit"),
    )
    assert found.endings == {
        "limit": Ending(rollouts=2, score=0.5),
        "answer with a part of the score": Ending(rollouts=1, score=0.5),
        "right answer": Ending(rollouts=1, score=1.0),
        "wrong answer": Ending(rollouts=1, score=0.0),
    }
    assert list(found.endings) == ["limit", "answer with a part of the score", "right answer", "wrong answer"]


def test_groups_have_scores_of_their_own() -> None:
    found = summary(result("a", 1, group="level 9"), result("b", 0, group="level 10"), result("c", 1, group="level 10"))
    assert {name: (one.mean, one.n) for name, one in found.groups.items()} == {"level 9": (1, 1), "level 10": (0.5, 2)}
    assert list(found.groups) == ["level 9", "level 10"]


def test_a_group_that_nothing_was_measured_of_is_left_out() -> None:
    assert summary(result("a", None, outcome="model", group="hard"), result("b", 1, group="easy")).groups.keys() == {
        "easy"
    }


def test_amounts_are_of_all_rollouts_those_that_failed_too() -> None:
    usage = Usage(input=10, output=2, cache_read=3)
    found = summary(
        result("a", 1, cost=0.5, usage=usage, steps=4, seconds=10, unpriced=2),
        result("b", None, outcome="model", cost=1.5, user_cost=0.25, usage=usage, steps=2, seconds=30, unpriced=1),
    )
    assert (found.cost.total, found.cost.mean, found.user_cost.total, found.unpriced) == (2.0, 1.0, 0.25, 3)
    assert (found.usage, found.tokens.total, found.tokens.mean) == (usage + usage, 30, 15)
    assert (found.steps.mean, found.seconds.total) == (3, 40)


def test_what_a_rollout_takes_leaves_out_those_that_never_began_or_were_interrupted() -> None:
    worked = result("a", 1, cost=0.5, usage=Usage(input=10), steps=4, seconds=10)
    half = result("c", None, outcome="interrupted", cost=0.25, steps=1)
    found = summary(worked, result("b", None, outcome="unfit", seconds=90), half)
    assert (found.cost.mean, found.tokens.mean, found.steps.mean, found.cost.total) == (0.5, 10, 4, 0.75)
    assert (found.seconds.mean, found.seconds.total) == (10, 100)


def test_skipped_instances_are_listed_by_reason() -> None:
    found = summary(result("a", 1), skipped={"b": "needs Java", "c": "needs Docker", "d": "needs Java"})
    assert found.skipped == {"needs Java": ["b", "d"], "needs Docker": ["c"]}
    assert "skipped" not in found.run


def test_a_run_of_which_nothing_is_done_yet_has_no_score() -> None:
    found = summary(instances=164)
    assert (found.wanted, found.measured, found.score, found.pass_at, found.endings) == (164, 0, None, {}, {})


def test_it_survives_json() -> None:
    found = summary(result("a", 1, group="g"), result("a", 0, 2), result("b", None, outcome="grader"), benchmark="x")
    assert Summary.model_validate_json(found.model_dump_json()) == found


RESULTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.0, 1.0, None])), unique_by=lambda one: one[0], min_size=1
)


@settings(deadline=None)
@given(RESULTS, st.randoms(use_true_random=False))
def test_the_order_of_results_says_nothing(pairs: list[tuple[str, float | None]], order: random.Random) -> None:
    results = [result(one, score, outcome="model" if score is None else "limit") for one, score in pairs]
    shuffled = order.sample(results, len(results))
    assert summary(*shuffled) == summary(*results)


@settings(deadline=None)
@given(st.lists(st.text(max_size=8)))
def test_any_names_have_an_order(names: list[str]) -> None:
    assert sorted(sorted(names, key=natural)) == sorted(names)


def test_names_are_sorted_by_the_numbers_in_them() -> None:
    assert sorted(["Python/10", "Python/9", "Python/1"], key=natural) == ["Python/1", "Python/9", "Python/10"]
