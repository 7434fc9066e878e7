"""The summary of a run: its score with an interval, the outcomes of its rollouts, and their cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import Any, Literal, cast

from pydantic import JsonValue

from handiwork.evals.reporting.statistics import Interval, bootstrap, pass_at_k, wilson
from handiwork.evals.running.results import LOST, Result
from handiwork.events.base import Model
from handiwork.events.record import Usage

RIGHT, PARTIAL, WRONG = "right answer", "answer with a part of the score", "wrong answer"
"""The endings of "submitted", by whether the score is 1, between, or 0."""

Trials = Mapping[str, Sequence[float]]
"""The scores of each instance's trials, by its id."""


class Estimate(Model):
    """A mean over ``n`` instances, and its 95 % interval: None if all values are equal.

    "Wilson" is the interval of a proportion, for scores that are 0 or 1 and one trial each; "bootstrap" the percentile
    bootstrap over the instances, whose trials are averaged first, as they are not independent.
    """

    mean: float
    n: int
    interval: Interval | None
    method: Literal["Wilson", "bootstrap"]


class Amount(Model):
    """The total over all rollouts, and the mean over those that began and were not interrupted."""

    total: float
    mean: float


class Ending(Model):
    """The rollouts that ended in one way; ``score`` is their mean, None if they have none."""

    rollouts: int
    score: float | None


class ArmShare(Model):
    """The scores of the arm ``arm``, "oracle" or "empty", on the instances of a run that it measured.

    ``folder`` is the name of its run, ``trials`` the number of its rollouts of an instance. ``wrong`` has the mean
    scores that are not 1 for the oracle, not 0 for the empty arm. ``flaky`` has the instances that the oracle's trials
    solved in part, with "K of N". ``same_code`` tells whether Handiwork's code was that of the run.
    """

    arm: str
    folder: str
    trials: int
    score: Estimate
    wrong: dict[str, float]
    flaky: dict[str, str]
    same_code: bool


class Summary(Model):
    """The summary of a run.

    ``run`` holds its conditions. Of the ``wanted`` instances, ``measured`` have the score of at least one trial;
    ``skipped`` are the instances that cannot run on the machine, by the reason. ``failures`` are the rollouts lost to
    infrastructure or the grader; ``if_failed`` is the score if each of them counted as 0, None if there are none.
    ``pass_at`` is pass@k by k, for scores of 0 and 1, over the instances with k measured trials. ``figures`` are the
    benchmark's other figures, ``arms`` the scores of the arms. Amounts are USD, tokens, steps, and seconds of wall
    time. ``unpriced`` counts completions of unknown price, which ``cost`` leaves out. ``cut_off``
    counts the measured rollouts that a limit ended.
    """

    run: dict[str, JsonValue]
    wanted: int
    measured: int
    skipped: dict[str, list[str]]
    rollouts: int
    failures: dict[str, int]
    score: Estimate | None
    if_failed: Estimate | None
    pass_at: dict[int, float]
    figures: dict[str, float]
    arms: list[ArmShare]
    groups: dict[str, Estimate]
    endings: dict[str, Ending]
    cut_off: int
    cost: Amount
    user_cost: Amount
    feedback_cost: Amount = Amount(total=0.0, mean=0.0)
    feedback_tokens: Amount = Amount(total=0.0, mean=0.0)
    unpriced: int
    usage: Usage
    tokens: Amount
    steps: Amount
    seconds: Amount

    @property
    def flaky(self) -> dict[str, str]:
        """The instances whose reference solution does not always score 1, with "K of N" trials in which it does."""
        return {name: share for one in self.arms for name, share in one.flaky.items()}


def summarise(
    run: Mapping[str, Any],
    results: Sequence[Result],
    figures: Mapping[str, float],
    arms: Sequence[ArmShare] = (),
) -> Summary:
    """Return the summary of a run; ``run`` is its manifest as a plain mapping.

    Its key "instances" is the number of instances to run, "trials" the number of trials of each, and "skipped"
    (optional) maps the ids of instances that cannot run to the reasons; the other keys are copied.
    """
    trials = scores_of(results)
    failures = _frequencies("grader" if r.outcome == "grader" else "infrastructure" for r in results if _is_failure(r))
    zeroed = [r.model_copy(update={"score": 0.0}) if _is_failure(r) else r for r in results]
    skipped = cast("Mapping[str, str]", run.get("skipped", {}))
    return Summary(
        run={key: value for key, value in run.items() if key != "skipped"},
        wanted=int(run["instances"]),
        measured=len(trials),
        skipped={why: [one for one in skipped if skipped[one] == why] for why in dict.fromkeys(skipped.values())},
        rollouts=len(results),
        failures=failures,
        score=estimate(trials),
        if_failed=estimate(scores_of(zeroed)) if failures else None,
        pass_at=_pass_at(trials, int(run["trials"])),
        figures=dict(figures),
        arms=list(arms),
        groups=_groups(results),
        endings=_endings(results),
        cut_off=sum(map(_is_cut_off, results)),
        cost=_amount(results, lambda r: r.cost),
        user_cost=_amount(results, lambda r: r.user_cost),
        feedback_cost=_amount(results, lambda r: r.feedback_cost),
        feedback_tokens=_amount(results, lambda r: r.feedback_usage.total),
        unpriced=sum(r.unpriced for r in results),
        usage=sum((r.usage for r in results), Usage()),
        tokens=_amount(results, lambda r: r.usage.total),
        steps=_amount(results, lambda r: r.steps),
        seconds=_amount(results, lambda r: r.seconds),
    )


def scores_of(results: Iterable[Result]) -> dict[str, list[float]]:
    """Return the scores of each instance's measured trials; instances without any are left out."""
    scores: dict[str, list[float]] = {}
    for result in results:
        if result.score is not None:
            scores.setdefault(result.id, []).append(result.score)
    return scores


def binary(trials: Trials) -> bool:
    """Return whether every score is 0 or 1."""
    return all(score in (0, 1) for scores in trials.values() for score in scores)


def natural(name: str) -> list[str | int]:
    """Return the key that sorts names as people do: item 9 before item 10."""
    return [int(part) if number % 2 else part for number, part in enumerate(re.split("([0-9]{1,18})", name))]


def estimate(trials: Trials) -> Estimate | None:
    """Return the mean score over instances with its interval, None if there are none."""
    if not trials:
        return None
    means = [fmean(scores) for scores in trials.values()]
    if binary(trials) and all(len(scores) == 1 for scores in trials.values()):
        interval = wilson(round(sum(means)), len(means))
        return Estimate(mean=fmean(means), n=len(means), interval=interval, method="Wilson")
    return bootstrap_estimate(means)


def bootstrap_estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of at least one value with its bootstrap interval."""
    interval = bootstrap(values) if len(set(values)) > 1 else None
    return Estimate(mean=fmean(values), n=len(values), interval=interval, method="bootstrap")


def ending(result: Result) -> str:
    """Return the ending of a rollout as the report names it."""
    if result.outcome != "submitted":
        return result.outcome
    return RIGHT if result.score == 1 else PARTIAL if result.score else WRONG


def _is_cut_off(result: Result) -> bool:
    return result.outcome in ("limit", "timeout") or (result.outcome == "submitted" and bool(result.why))


def _is_failure(result: Result) -> bool:
    return result.outcome in LOST


def _pass_at(trials: Trials, maximum: int) -> dict[int, float]:
    if not trials or not binary(trials):
        return {}
    estimates: dict[int, float] = {}
    for k in range(1, maximum + 1):
        eligible = [scores for scores in trials.values() if len(scores) >= k]
        if eligible:
            estimates[k] = fmean([pass_at_k(len(scores), round(sum(scores)), k) for scores in eligible])
    return estimates


def _groups(results: Sequence[Result]) -> dict[str, Estimate]:
    names = sorted({result.group for result in results} - {""}, key=natural)
    estimates = {name: estimate(scores_of(r for r in results if r.group == name)) for name in names}
    return {name: one for name, one in estimates.items() if one is not None}


def _endings(results: Sequence[Result]) -> dict[str, Ending]:
    """Return the endings with their counts, the most frequent first."""
    endings: dict[str, Ending] = {}
    for name, count in _frequencies(ending(result) for result in results).items():
        scores = [r.score for r in results if ending(r) == name and r.score is not None]
        endings[name] = Ending(rollouts=count, score=fmean(scores) if scores else None)
    return endings


def _frequencies(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda one: (-one[1], one[0])))


def _amount(results: Sequence[Result], of: Callable[[Result], float]) -> Amount:
    # Instances that cannot run here, and parts of rollouts, would make an agent look cheap.
    whole = [result for result in results if result.outcome != "interrupted"]
    begun = [result for result in whole if result.steps or result.spent or result.usage.total] or results
    return Amount(total=fsum(map(of, results)), mean=fmean(map(of, begun)) if begun else 0.0)
