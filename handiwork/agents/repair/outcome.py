"""The outcome of a check: whether it passed, and how many failures its runner counts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from handiwork.agents.rendering import shorten
from handiwork.events.observation import CmdOutputObservation

OUTPUT = 4_000
"""Maximum characters of a check's output that are kept."""

ENDED = ("done", "exited", "timeout")
"""The statuses of a check that ended or was stopped."""

_COUNT = re.compile(r"\b(\d+)[ ]+(failed|failures?|failing|errors?|passed|passing|pass)\b", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(failed|failures?|fail|errors?|passed|pass)[:=][ ]*(\d+)\b|^# (fail|pass) (\d+)$", re.IGNORECASE | re.MULTILINE
)
_RUN = re.compile(r"\b(?:Ran (\d+) tests?|Tests run: (\d+))")
_LINES = re.compile(r"^\s*(?:not ok\b|--- FAIL:)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a check; ``seconds`` is its duration, None if it was stopped, and ``output`` is shortened."""

    exit_code: int | None
    output: str
    seconds: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the check succeeded."""
        return self.exit_code == 0

    def is_better_than(self, other: Outcome) -> bool:
        """Return whether the check passes, or fails strictly less by its runner's summary, and passes no less."""
        if self.passed or other.passed:
            return self.passed and not other.passed
        (errors, failures, passes), (other_errors, other_failures, other_passes) = self._counts(), other._counts()
        fewer = (errors, failures) < (other_errors, other_failures)
        return fewer and (passes is None or other_passes is None or passes >= other_passes)

    @property
    def rank(self) -> tuple[bool, float, float]:
        """A key that sorts the best outcome first."""
        errors, failures, _ = self._counts()
        return not self.passed, errors, failures

    @property
    def summary(self) -> str:
        """The failure in a few words."""
        if self.exit_code is None:
            return "it does not end by itself"
        errors, failures, _ = self._counts()
        counts = [(failures, "failed"), (errors, "errors")]
        known = [f"{count:.0f} {word}" for count, word in counts if 0 < count < math.inf]
        return ", ".join([f"exit code {self.exit_code}", *known])

    def _counts(self) -> tuple[float, float, float | None]:
        """Return errors, failures and passed tests; without a summary infinite, the worst, and None."""
        matches = [(word, number) for number, word in _COUNT.findall(self.output)]
        matches += [(a or c, b or d) for a, b, c, d in _NAMED.findall(self.output)]
        counts = {"error": 0.0, "fail": 0.0, "pass": 0.0}
        for word, number in matches:
            counts[next(kind for kind in counts if word.lower().startswith(kind))] += int(number)
        if not any(word.lower().startswith(("error", "fail")) for word, _ in matches):
            failures = len(_LINES.findall(self.output))
            return (0.0, failures, None) if failures else (math.inf, math.inf, None)
        passes = counts["pass"] if any(word.lower().startswith("pass") for word, _ in matches) else None
        if runs := [int(a or b) for a, b in _RUN.findall(self.output)]:
            passes = runs[-1] - counts["error"] - counts["fail"]
        return counts["error"], counts["fail"], passes


def outcome_of(observation: CmdOutputObservation, output: str, seconds: float) -> Outcome:
    """Return the outcome of a check that ended with the observation; ``seconds`` is its duration."""
    ended = observation.status != "timeout"
    code = observation.exit_code if ended else None
    return Outcome(code, shorten(output, OUTPUT), seconds if ended else None)


def patience(first: Outcome) -> float:
    """Return the timeout in seconds of further runs of a check.

    A check that was stopped gets little time: without its endless loop it ends soon.
    """
    return 15.0 if first.seconds is None else 15.0 + 5 * first.seconds
