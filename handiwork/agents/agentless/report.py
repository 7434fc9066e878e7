"""The agent's final report: the change, the evidence for it, and the points that are not verified."""

from __future__ import annotations

from collections.abc import Iterator

from handiwork.agents.agentless.pipeline import BASE, Pipeline
from handiwork.agents.agentless.rank import Choice

NAMED = 5
"""Tests that a message names."""


def report(line: Pipeline, choice: Choice) -> str:
    """Return the message for an applied candidate."""
    candidate = line.candidates[choice.number]
    paths = ", ".join(dict.fromkeys(edit.path for edit in candidate.edits))
    total = len(line.candidates)
    nonempty = sum(bool(one.patch) for one in line.candidates)
    first = (
        f"Changed {paths}: {candidate.label}, one of {_count(nonempty, 'candidate')} that change code "
        f"(of {total} replies). {choice.votes} of the {choice.voters} that the tests left are this patch."
    )
    return "\n".join([first, *_unread(line), *_tests(line, choice), *_reproduction(line, choice)])


def no_candidate(line: Pipeline) -> str:
    """Return the reason of a rejection: no reply of the model changes code."""
    places = ", ".join(line.files)
    first = (
        f"None of the model's {len(line.candidates)} replies has an edit that fits the code and changes it. "
        f"Looked at {places}. All files are as they were."
    )
    return "\n".join([first, *_unread(line)])


def _unread(line: Pipeline) -> Iterator[str]:
    if line.progress.unlisted:
        yield f"Unverified: the cause may be in another file. {line.progress.unlisted}"
    if line.unread:
        yield (
            f"Unverified: {', '.join(line.unread)} may be to blame, too, and could not be read. "
            f"{line.progress.reading_limits()}"
        )


def _tests(line: Pipeline, choice: Choice) -> Iterator[str]:
    base = line.progress.trials.get(BASE)
    if not line.inputs.regression:
        yield "Unverified: the existing tests were not run, as the settings say."
    elif line.check is None:
        yield "Unverified: no test command is known, so the existing tests were not run."
    elif not line.passing:
        yield f"Unverified: `{line.check}` reports no test that passes without the change."
    elif not line.selected:
        yield f"Unverified: all of the {len(line.passing)} tests that passed before may rightly change."
    else:
        failures = line.verdicts[choice.number].failures
        known = len(line.selected)
        if failures:
            yield f"{failures} of {_count(known, 'test')} that passed before fail with it: {_names(line, choice)}."
        elif failures == 0:
            verb = "passes" if known == 1 else "pass"
            yield f"{_count(known, 'test')} that passed before (`{line.check}`) still {verb}."
        else:
            yield "Unverified: its trial gave no report of the existing tests, as that of no other candidate did."
        if excluded := len(line.passing) - known:
            yield f"Unverified: {_count(excluded, 'test')} left out, which may rightly change."
        if further := len(base.passed if base else ()) - len(line.passing):
            yield f"Unverified: {_count(further, 'further test')} that passed before: too many to compare."
    if base is not None and base.seconds is None:
        yield (
            f"Unverified: without the change `{line.check}` did not end in {line.inputs.test_timeout:g} s, so tests "
            "that it reports later do not count. The task can name a shorter test command in backticks."
        )


def _reproduction(line: Pipeline, choice: Choice) -> Iterator[str]:
    if not line.inputs.reproduction:
        yield "Unverified: no reproduction test was written, as the settings say."
    elif line.elected is None:
        written = _count(len(line.scripts), "reproduction test")
        yield f"Unverified: none of the model's {written} reproduces the issue, so nothing shows that it is resolved."
    else:
        label, votes = line.elected
        source = f"{label}, which reproduced the issue before ({votes} of {len(line.reproducing)} are the same)"
        if line.verdicts[choice.number].resolves:
            yield f"The issue is resolved by {source}."
            yield "Unverified: the model wrote that test itself; whether it tests the right thing, only you can say."
        else:
            yield f"Unverified: nothing shows that the candidate resolves the issue by {source}."
            verdicts = zip(line.candidates, line.verdicts, strict=True)
            if other := next((candidate.label for candidate, verdict in verdicts if verdict.resolves), ""):
                yield f"{other} resolves it, but more tests fail with that."


def _names(line: Pipeline, choice: Choice) -> str:
    failed = line.failed(choice.number)
    return ", ".join(failed[:NAMED]) + (f" and {len(failed) - NAMED} more" if len(failed) > NAMED else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
