"""The scores of the arms "oracle" and "empty" on the instances of a run, from runs in the same folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from handiwork.evals.reporting.summary import ArmShare, estimate, natural, scores_of
from handiwork.evals.running import manifest
from handiwork.evals.running.arms import ARMS, ORACLE
from handiwork.evals.running.manifest import Manifest
from handiwork.evals.running.results import Result, Results, ResultsError


def beside(out: Path, run: Manifest) -> list[ArmShare]:
    """Return the shares of the newest run of each arm in the folder that holds the run ``out``, itself included.

    Only runs on the same data and kind of sandbox count that measured one of the run's instances. Folders that cannot
    be read are left out.
    """
    newest: dict[str, tuple[Manifest, Path, list[Result]]] = {}
    for folder in sorted(out.parent.iterdir()):
        try:
            arm = manifest.read(folder)
            results = Results(folder).by_key.values() if _is_arm_of(arm, run) else ()
        except (ResultsError, OSError):
            continue
        known, on_shared = newest.get(arm.conditions.agent), [one for one in results if one.id in run.instances]
        if scores_of(on_shared) and (known is None or known[0].began <= arm.began):
            newest[arm.conditions.agent] = arm, folder, on_shared
    return [_share(*newest[arm], run) for arm in ARMS if arm in newest]


def flaky(results: Sequence[Result]) -> dict[str, str]:
    """Return the instances whose trials of the reference solution differ, with "K of N" of those that scored 1."""
    trials: dict[str, list[bool]] = {}
    for result in results:
        # The set-up of a benchmark may itself try the reference solution, and then call the instance unfit.
        if result.score is not None or result.outcome == "unfit":
            trials.setdefault(result.id, []).append(result.score == 1)
    return {
        one: f"{sum(passed)} of {len(passed)}"
        for one, passed in sorted(trials.items(), key=lambda item: natural(item[0]))
        if len(set(passed)) > 1
    }


def _is_arm_of(arm: Manifest, run: Manifest) -> bool:
    def condition(one: Manifest) -> tuple[str, ...]:
        conditions = one.conditions
        return conditions.benchmark, conditions.split, one.data_hash, conditions.sandbox, one.image

    return arm.conditions.agent in ARMS and condition(arm) == condition(run)


def _share(arm: Manifest, folder: Path, results: Sequence[Result], run: Manifest) -> ArmShare:
    scores = scores_of(results)
    score = estimate(scores)
    if score is None:
        raise ValueError("an arm without a score has no share")
    name = arm.conditions.agent
    return ArmShare(
        arm=name,
        folder=folder.name,
        trials=arm.trials,
        score=score,
        wrong=_wrong(scores, 1.0 if name == ORACLE else 0.0),
        flaky=flaky(results) if name == ORACLE else {},
        same_code=arm.code == run.code,
    )


def _wrong(scores: Mapping[str, Sequence[float]], right: float) -> dict[str, float]:
    means = {one: fmean(trials) for one, trials in scores.items()}
    return {one: means[one] for one in sorted(means, key=natural) if means[one] != right}
