"""Compares two runs of the same benchmark, instance by instance."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.errors import HandiworkError
from handiwork.evals.reporting.statistics import mcnemar_exact
from handiwork.evals.reporting.summary import Estimate, binary, bootstrap_estimate, mean, natural, scores_of
from handiwork.evals.running.results import Result
from handiwork.events.base import Model


class CompareError(HandiworkError):
    """Two runs cannot be compared; the text says why."""


class Flip(Model):
    """An instance whose score differs in the second run; its trials are averaged."""

    id: str
    before: float
    after: float


class Comparison(Model):
    """The differences between the second run, "after", and the first, "before", on the instances that both measured.

    ``before`` and ``after`` are the mean scores on these. ``difference`` is after minus before, with the interval of
    the paired bootstrap. ``p`` is that of McNemar's exact test, None unless every instance's score is 0 or 1.
    ``better`` and ``worse`` are the flips, the largest first; ``only_before`` and ``only_after`` are the ids that only
    one run measured.
    """

    before: float
    after: float
    difference: Estimate
    p: float | None
    better: list[Flip]
    worse: list[Flip]
    only_before: list[str]
    only_after: list[str]


def compare(before: Sequence[Result], after: Sequence[Result]) -> Comparison:
    """Return the comparison of two runs. Raises CompareError if they have no measured instance in common."""
    first = {one: mean(scores) for one, scores in scores_of(before).items()}
    second = {one: mean(scores) for one, scores in scores_of(after).items()}
    pairs = [Flip(id=one, before=first[one], after=second[one]) for one in first if one in second]
    if not pairs:
        raise CompareError("the runs have no measured instance in common: compare two of one benchmark and split")
    better = [pair for pair in pairs if pair.after > pair.before]
    worse = [pair for pair in pairs if pair.after < pair.before]
    is_binary = binary({pair.id: (pair.before, pair.after) for pair in pairs})
    return Comparison(
        before=mean([pair.before for pair in pairs]),
        after=mean([pair.after for pair in pairs]),
        difference=bootstrap_estimate([pair.after - pair.before for pair in pairs]),
        p=mcnemar_exact(len(worse), len(better)) if is_binary else None,
        better=sorted(better, key=_size),
        worse=sorted(worse, key=_size),
        only_before=[one for one in first if one not in second],
        only_after=[one for one in second if one not in first],
    )


def _size(flip: Flip) -> tuple[float, list[str | int]]:
    return -abs(flip.after - flip.before), natural(flip.id)
