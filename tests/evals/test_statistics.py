"""The estimators, beside those of scipy and beside plain enumeration."""

from __future__ import annotations

import itertools
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.evals.reporting.statistics import bootstrap, mcnemar_exact, pass_at_k, wilson

PROPORTIONS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=20)


@pytest.fixture(scope="module")
def stats() -> Any:
    """scipy.stats, imported only where these tests run: it takes a second."""
    return pytest.importorskip("scipy.stats", reason="scipy is of the dependency group perf")


@pytest.mark.slow
@settings(deadline=None)
@given(proportion=PROPORTIONS)
def test_wilson_is_that_of_scipy(stats: Any, proportion: tuple[int, int]) -> None:
    theirs = stats.binomtest(*proportion).proportion_ci(method="wilson")
    assert wilson(*proportion) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@settings(deadline=None)
@given(PROPORTIONS)
def test_wilson_holds_the_proportion_and_stays_within_0_and_1(proportion: tuple[int, int]) -> None:
    low, high = wilson(*proportion)
    assert 0 <= low <= proportion[0] / proportion[1] <= high <= 1
    assert low < high


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (2, 1), (-1, 5)])
def test_wilson_refuses_what_is_no_proportion(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson(successes, n)


@settings(deadline=None)
@given(only_a=st.integers(0, 400), only_b=st.integers(0, 400))
def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs(stats: Any, only_a: int, only_b: int) -> None:
    theirs = stats.binomtest(only_a, only_a + only_b, 0.5).pvalue if only_a + only_b else 1.0
    assert mcnemar_exact(only_a, only_b) == pytest.approx(theirs, rel=1e-9)


def test_mcnemar_with_many_pairs_does_not_overflow() -> None:
    assert mcnemar_exact(0, 2000) == pytest.approx(0, abs=1e-300)
    assert mcnemar_exact(1000, 1000) == 1


@pytest.mark.parametrize("n", [2, 10, 40, 200])
def test_the_bootstrap_is_that_of_scipy(stats: Any, n: int) -> None:
    values = [(number * number % 17) / 16 for number in range(n)]
    theirs = stats.bootstrap((values,), fmean, method="percentile", n_resamples=4000, vectorized=False, rng=1)
    # Both draw at random: their bounds agree to a few hundredths of the interval's width.
    low, high = theirs.confidence_interval
    assert bootstrap(values) == pytest.approx((low, high), abs=0.05 * (high - low))


@settings(max_examples=15, deadline=None)
@given(SCORES)
def test_a_bootstrap_interval_is_within_the_values_and_always_the_same(values: list[float]) -> None:
    low, high = bootstrap(values)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert bootstrap(values) == (low, high)


@settings(max_examples=15, deadline=None)
@given(SCORES, st.floats(-1, 1))
def test_a_shift_of_all_values_shifts_the_interval(values: list[float], shift: float) -> None:
    low, high = bootstrap(values)
    assert bootstrap([value + shift for value in values]) == pytest.approx((low + shift, high + shift), abs=1e-9)


def test_the_bootstrap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        bootstrap([])


@settings(deadline=None)
@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_all_choices_of_k_trials_with_a_right_one(case: tuple[int, int, int]) -> None:
    n, c, k = case
    choices = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))


@settings(deadline=None)
@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_1_is_the_mean_and_pass_at_all_says_whether_any_was_right(case: tuple[int, int]) -> None:
    n, c = case
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert pass_at_k(n, c, n) == (1 if c else 0)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, 1, 0)])
def test_pass_at_more_trials_than_there_are_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(n, c, k)
