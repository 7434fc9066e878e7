"""The outcome of a check: whether it passed, and how many failures its runner counts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from handiwork.agents.rendering import shorten
from handiwork.events.observation import CmdOutputObservation

OUTPUT = 4_000
"""Characters of a check's output that are kept, besides lines with counts."""

COUNTED, LONGEST_COUNT = 1_000, 200
"""Maximum number of lines with counts that are kept of the middle of an output, and characters of each."""

ENDED = ("done", "exited", "timeout")
"""The statuses of a check that ended or was stopped."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_COUNT = re.compile(r"\b(\d+)[ ]+(failed|failures?|failing|errors?|passed|passing|pass)\b", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(failed|failures?|fail|errors?|passed|pass)[:=][ ]*(\d+)\b|^[#ℹ] (fail|pass) (\d+)$",
    re.IGNORECASE | re.MULTILINE,
)
_RAN, _RUN = re.compile(r"\bRan (\d+) tests?"), re.compile(r"\bTests run: (\d+)")
_LINES = re.compile(r"^\s*(?:not ok\b|--- FAIL:)", re.MULTILINE)
_UNLOADED = re.compile(
    r"Failed to import test module|unittest\.loader\._FailedTest|\bERROR collecting |\berrors? during collection\b"
    r"|Test suite failed to run|^Tests: +0 total|^ *Tests +no tests|\bFailed Suites\b"
    r"|\[(?:build|setup) failed\]|^panic: |\bCOMPILATION ERROR\b|\bCompilation failed\b",
    re.MULTILINE,
)
"""Messages of test runners about tests that do not run, because code does not load or ends all tests at once."""
_COUNTING = (_COUNT, _NAMED, _RAN, _RUN, _LINES, _UNLOADED)


class _Counts(NamedTuple):
    """The numbers in an output: messages about tests that do not run, errors, failures and passed tests."""

    unloaded: float
    errors: float
    failures: float
    passes: float | None


_NO_SUMMARY = _Counts(math.inf, math.inf, math.inf, None)


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
        """Return whether the check passes, or fails strictly less by its runner's summary, and passes no less.

        Failures that are fewer only because fewer tests run do not count.
        """
        if self.passed or other.passed:
            return self.passed and not other.passed
        now, before = self._counts(), other._counts()
        if now[:3] >= before[:3] or (now.unloaded and before.unloaded == math.inf):
            return False
        if now.passes is None or before.passes is None:
            return before.passes is None
        return now.passes >= before.passes and now.passes + now.failures >= before.passes + before.failures

    @property
    def rank(self) -> tuple[bool, float, float, float]:
        """A key that sorts the best outcome first."""
        return not self.passed, *self._counts()[:3]

    @property
    def summary(self) -> str:
        """The failure in a few words."""
        if self.exit_code is None:
            return "it does not end by itself"
        _, errors, failures, _ = self._counts()
        counts = [(failures, "failed"), (errors, "errors")]
        known = [f"{count:.0f} {word}" for count, word in counts if 0 < count < math.inf]
        return ", ".join([f"exit code {self.exit_code}", *known])

    def _counts(self) -> _Counts:
        """Return the numbers in the output; without any summary they are infinite, the worst."""
        matches = [(word, number) for number, word in _COUNT.findall(self.output)]
        matches += [(a or c, b or d) for a, b, c, d in _NAMED.findall(self.output)]
        counts = {"error": 0.0, "fail": 0.0, "pass": 0.0}
        for word, number in matches:
            counts[next(kind for kind in counts if word.lower().startswith(kind))] += int(number)
        unloaded = len(_UNLOADED.findall(self.output))
        if not any(word.lower().startswith(("error", "fail")) for word, _ in matches):
            failures = len(_LINES.findall(self.output))
            return _Counts(unloaded, 0.0, failures, None) if failures or unloaded else _NO_SUMMARY
        passes = counts["pass"] if any(word.lower().startswith("pass") for word, _ in matches) else None
        ran, run = _RAN.findall(self.output), _RUN.findall(self.output)
        if ran or run:  # Maven's last number is the sum of those before it
            passes = sum(map(int, ran or run[-1:])) - counts["error"] - counts["fail"]
        return _Counts(unloaded, counts["error"], counts["fail"], passes)


def plain(output: str) -> str:
    """Return an output without colours, which a project's settings may ask for in any terminal."""
    return _COLOUR.sub("", output)


def outcome_of(observation: CmdOutputObservation, output: str, seconds: float) -> Outcome:
    """Return the outcome of a check that ended with the observation; ``seconds`` is its duration."""
    ended = observation.status != "timeout"
    code = observation.exit_code if ended else None
    return Outcome(code, _shortened(plain(output)), seconds if ended else None)


def _shortened(output: str) -> str:
    """Return the output; of a long one the ends, and between them the lines that count: some runners' are anywhere."""
    if len(output) <= OUTPUT:
        return output
    first, last = output.rfind("\n", 0, OUTPUT // 2) + 1, output.find("\n", len(output) - OUTPUT // 2) + 1
    middle = output[first:last].splitlines()
    counts = [line[:LONGEST_COUNT] for line in middle if any(one.search(line[:LONGEST_COUNT]) for one in _COUNTING)]
    text = "\n".join(["[... some lines are left out ...]", *counts[:COUNTED]])
    return f"{shorten(output[:first], OUTPUT)}{text}\n{shorten(output[last:], OUTPUT)}"


def patience(first: Outcome) -> float:
    """Return the timeout in seconds of further runs of a check.

    A check that was stopped gets little time: without its endless loop it ends soon.
    """
    return 15.0 if first.seconds is None else 15.0 + 5 * first.seconds
