"""Compares two runs of the same benchmark, instance by instance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from handiwork.errors import HandiworkError
from handiwork.evals import registry
from handiwork.evals.reporting.statistics import mcnemar_exact
from handiwork.evals.reporting.summary import Estimate, binary, bootstrap_estimate, natural, scores_of
from handiwork.evals.running.manifest import Manifest
from handiwork.evals.running.results import Result
from handiwork.events.base import Model

CHECK = "check"
"""The detail of a score that tells whether the check that the agent sees passed."""


class CompareError(HandiworkError):
    """Two runs cannot be compared; the text says why."""


class Flip(Model):
    """An instance whose score differs in the second run; its trials are averaged."""

    id: str
    before: float
    after: float


class ScoreChange(Model):
    """The mean scores of two runs on the instances that both measured.

    ``difference`` is after minus before, with the interval of the paired bootstrap.
    """

    before: float
    after: float
    difference: Estimate


class Comparison(ScoreChange):
    """The differences between the second run, "after", and the first, "before", on the instances that both measured.

    ``p`` is that of McNemar's exact test, None unless every instance's score is 0 or 1. ``better`` and ``worse`` are
    the flips, the largest first; ``only_before`` and ``only_after`` are the ids that only one run measured. ``groups``
    has the changes by group. ``chosen`` is None unless one run has several trials of instances with a visible check:
    then one trial stands for them, see ``first_checked``, with the model calls of the other run.
    """

    p: float | None
    better: list[Flip]
    worse: list[Flip]
    only_before: list[str]
    only_after: list[str]
    groups: dict[str, ScoreChange]
    chosen: ScoreChange | None


def check_same_benchmark(before: Manifest, after: Manifest) -> None:
    """Raise CompareError if two runs are of different benchmarks: the same id would stand for two tasks."""
    names = [registry.find(one.conditions.benchmark).name for one in (before, after)]
    if names[0] != names[1]:
        raise CompareError(f"the runs are of two benchmarks, {names[0]} and {names[1]}: compare two of one")


def compare(before: Sequence[Result], after: Sequence[Result]) -> Comparison:
    """Return the comparison of two runs. Raises CompareError if they have no measured instance in common."""
    pairs = _pairs(before, after)
    if not pairs:
        raise CompareError("the runs have no measured instance in common: compare two of one benchmark and split")
    better = [pair for pair in pairs if pair.after > pair.before]
    worse = [pair for pair in pairs if pair.after < pair.before]
    is_binary = binary({pair.id: (pair.before, pair.after) for pair in pairs})
    total = _change(pairs)
    shared = {pair.id for pair in pairs}
    return Comparison(
        before=total.before,
        after=total.after,
        difference=total.difference,
        p=mcnemar_exact(len(worse), len(better)) if is_binary else None,
        better=sorted(better, key=_size),
        worse=sorted(worse, key=_size),
        only_before=[one for one in scores_of(before) if one not in shared],
        only_after=[one for one in scores_of(after) if one not in shared],
        groups=_groups(pairs, {result.id: result.group for result in before}),
        chosen=_chosen(before, after),
    )


def first_checked(results: Sequence[Result], calls: Mapping[str, int]) -> list[Result]:
    """Return one measured trial of each instance: the choice of a user who cannot see the score.

    It is the first whose visible check passed, without any the last, among the first trials that took no more model
    calls together than ``calls`` has for the instance; the very first always counts.
    """
    trials: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: result.trial):
        if result.score is not None:
            trials.setdefault(result.id, []).append(result)
    return [_choose(several, calls.get(one, 0)) for one, several in trials.items()]


def _choose(trials: Sequence[Result], calls: int) -> Result:
    last = trials[0]
    for trial in trials:
        calls -= trial.calls
        if calls < 0:
            break
        last = trial
        if trial.details.get(CHECK):
            break
    return last


def _chosen(before: Sequence[Result], after: Sequence[Result]) -> ScoreChange | None:
    if _has_choice(before):
        pairs = _pairs(first_checked(before, _calls(after)), after)
    elif _has_choice(after):
        pairs = _pairs(before, first_checked(after, _calls(before)))
    else:
        return None
    return _change(pairs)


def _has_choice(results: Iterable[Result]) -> bool:
    return any(result.trial > 1 and CHECK in result.details for result in results)


def _calls(results: Sequence[Result]) -> dict[str, int]:
    """Return the mean number of model calls of each instance's measured trials, rounded."""
    calls: dict[str, list[float]] = {}
    for result in results:
        if result.score is not None:
            calls.setdefault(result.id, []).append(result.calls)
    return {one: round(fmean(numbers)) for one, numbers in calls.items()}


def _pairs(before: Sequence[Result], after: Sequence[Result]) -> list[Flip]:
    first = {one: fmean(scores) for one, scores in scores_of(before).items()}
    second = {one: fmean(scores) for one, scores in scores_of(after).items()}
    return [Flip(id=one, before=first[one], after=second[one]) for one in first if one in second]


def _change(pairs: Sequence[Flip]) -> ScoreChange:
    return ScoreChange(
        before=fmean([pair.before for pair in pairs]),
        after=fmean([pair.after for pair in pairs]),
        difference=bootstrap_estimate([pair.after - pair.before for pair in pairs]),
    )


def _groups(pairs: Sequence[Flip], groups: Mapping[str, str]) -> dict[str, ScoreChange]:
    names = sorted({groups[pair.id] for pair in pairs} - {""}, key=natural)
    return {name: _change([pair for pair in pairs if groups[pair.id] == name]) for name in names}


def _size(flip: Flip) -> tuple[float, list[str | int]]:
    return -abs(flip.after - flip.before), natural(flip.id)
