"""Summaries and comparisons as headlines and tables of text, for every form of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from handiwork.evals.reporting.compare import Comparison, Flip, ScoreChange
from handiwork.evals.reporting.statistics import RESAMPLES, Interval
from handiwork.evals.reporting.summary import Amount, Estimate, Summary
from handiwork.evals.running.arms import ARMS, ORACLE
from handiwork.evals.running.results import NOT_MEASURED

LISTED_IDS = 20
"""The maximum number of ids in a cell; further ones are counted."""


CHOSEN = "the first that passes the visible check, within the other run's model calls"
"""The choice of one trial."""

THE_RUN = "The run"
"""The title of the table with the run's conditions."""


class Table(NamedTuple):
    """A table of texts; with ``numbers`` all columns but the first are numbers."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numbers: bool = True


def headline(summary: Summary) -> str:
    """Return the benchmark and its score with the interval in one line."""
    run, score = summary.run, summary.score
    critic = f"with feedback from {run['feedback_model']}" if run.get("feedback_model") else ""
    name = " ".join(filter(None, (str(run.get("benchmark", "")), str(run.get("split", "")), critic)))
    counts = f"{summary.measured} of {summary.wanted} instances measured"
    if score is None:
        return f"{name}: no score, {counts}"
    return f"{name}: {run.get('metric', 'score')} {estimate_text(score, summary)}, {counts}"


def estimate_text(score: Estimate, summary: Summary) -> str:
    """Return an estimate with its interval."""
    return f"{value(score.mean, summary)} (95 % interval {interval_text(score.interval, summary)})"


def value(score: float, summary: Summary) -> str:
    """Return a score in its metric's usual form: in per cent, a mean score from 0 to 1."""
    return f"{score:.3f}" if summary.run.get("metric") == "mean score" else f"{100 * score:.1f} %"


def of_run(summary: Summary) -> list[Table]:
    """Return the tables of a run that have rows."""
    groups = [
        (name, str(one.n), value(one.mean, summary), interval_text(one.interval, summary))
        for name, one in summary.groups.items()
        if len(summary.groups) > 1
    ]
    endings = [
        (
            f"{name} (not the agent's)" if name in NOT_MEASURED else name,
            str(one.rollouts),
            f"{100 * one.rollouts / summary.rollouts:.1f} %",
            "" if one.score is None else value(one.score, summary),
        )
        for name, one in summary.endings.items()
    ]
    skipped = [(why, str(len(ids)), _id_list(ids)) for why, ids in summary.skipped.items()]
    tables = [
        Table("Score", ("", "value", "95 % interval"), list(_scores(summary))),
        Table("Arms", ("arm", "score", "95 % interval", "instances", "trials"), list(_arms(summary))),
        Table("Flaky instances", ("instance", "its reference solution scored 1 in"), flaky_rows(summary), False),
        Table("Groups", ("group", "instances measured", "score", "95 % interval"), groups),
        Table("How rollouts ended", ("outcome", "rollouts", "share", "mean score"), endings),
        Table("What they took", ("", "a rollout", "in all"), list(_amounts(summary))),
        Table("Skipped instances", ("reason", "number", "instances"), skipped, numbers=False),
        Table(THE_RUN, ("of", "value"), list(_facts(summary.run)), numbers=False),
    ]
    return [table for table in tables if table.rows]


def notes(summary: Summary) -> list[str]:
    """Return notes for the reader of the tables."""
    lines: list[str] = []
    if summary.score is not None:
        resampled = f"percentile bootstrap over the instances, their trials averaged first, {RESAMPLES:,} resamples"
        how = "Wilson's, of a proportion" if summary.score.method == "Wilson" else resampled
        lines.append(f"Intervals: {how}.")
    if missing := summary.wanted - summary.measured:
        lines.append(f"{missing} of {summary.wanted} wanted instances have no score, and are in no mean.")
    lines += trial_notes(summary)
    lines += arm_notes(summary)
    lines += limit_notes(summary)
    lines += change_notes(summary)
    if summary.unpriced:
        lines.append(f"The price of {summary.unpriced} completions is not known: the cost leaves them out.")
    return lines


def trial_notes(summary: Summary) -> Iterator[str]:
    """Yield a note if measured instances lack the score of a trial."""
    trials = summary.run.get("trials")
    scored = sum(one.rollouts for one in summary.endings.values() if one.score is not None)
    if isinstance(trials, int) and scored < summary.measured * trials:
        yield f"The measured instances have the scores of {scored} of their {summary.measured * trials} trials."


def limit_notes(summary: Summary) -> Iterator[str]:
    """Yield a note if limits cut rollouts off."""
    if summary.cut_off:
        yield (
            f"A limit cut off {summary.cut_off} of {summary.rollouts} rollouts: tokens and cost leave out replies that "
            "the time limit interrupted."
        )


def change_notes(summary: Summary) -> Iterator[str]:
    """Yield a note if the run was resumed after a change that can affect its results."""
    if changed := _fact(summary.run.get("changed")):
        yield f"The run was resumed after a change of {changed}: its results are from before and after it."


def comparison_notes(before: Summary, after: Summary) -> Iterator[str]:
    """Yield notes for the reader of a comparison: on different data, and those on each run."""
    if before.run.get("data_hash") != after.run.get("data_hash"):  # different splits may share no more than their ids
        yield "The runs had different data: instances are paired by their ids, and may not be the same tasks."
    for name, summary in (("before", before), ("after", after)):
        for notes in (trial_notes, limit_notes, change_notes):
            yield from (f"{name}: {note}" for note in notes(summary))


def difference(comparison: Comparison, before: Summary) -> str:
    """Return the difference of two runs in one line."""
    change = comparison.difference
    p = "" if comparison.p is None else f", McNemar's exact p = {comparison.p:.3g}"
    return (
        f"Difference {change_text(change.mean, before)} (95 % interval {changes_text(change.interval, before)}){p}, "
        f"on {change.n} instances that both runs measured"
    )


def of_comparison(comparison: Comparison, before: Summary, after: Summary) -> list[Table]:
    """Return the tables of a comparison."""
    runs = [
        (
            name,
            value(score, summary),
            estimate_text(summary.score, summary) if summary.score else "",
            *cost_cells(summary),
        )
        for name, score, summary in (
            ("before", comparison.before, before),
            ("after", comparison.after, after),
        )
    ]
    keys = list(dict.fromkeys([*before.run, *after.run]))
    facts = [(key, _fact(before.run.get(key)), _fact(after.run.get(key))) for key in keys]
    differing = [row for row in facts if row[1] != row[2]]
    header = ("run", "score, shared instances", "score, all", "USD a rollout", "tokens a rollout", "seconds a rollout")
    unshared = [
        (name, str(len(ids)), _id_list(ids))
        for name, ids in (("before", comparison.only_before), ("after", comparison.only_after))
        if ids
    ]
    changes = ("instances", "before", "after", "difference", "95 % interval")
    groups = [(name, *_change_cells(one, before)) for name, one in comparison.groups.items()]
    chosen = [(CHOSEN, *_change_cells(comparison.chosen, before))] if comparison.chosen else []
    tables = [
        Table("Runs", header, runs),
        Table("Groups", ("group", *changes), groups if len(groups) > 1 else []),
        Table("One of several trials", ("", *changes), chosen),
        Table(f"Better: {len(comparison.better)}", ("instance", "before", "after"), _flips(comparison.better, before)),
        Table(f"Worse: {len(comparison.worse)}", ("instance", "before", "after"), _flips(comparison.worse, before)),
        Table("Measured by one run only", ("run", "number", "instances"), unshared, numbers=False),
        Table("What they did not have in common", ("", "before", "after"), differing, numbers=False),
    ]
    return [table for table in tables if table.rows]


def markdown(title: str, notes: Sequence[str], tables: Sequence[Table], picture: str) -> str:
    """Return a report as Markdown; ``picture`` is the file of its picture, "" for none."""
    parts = [f"# {_cell(title)}", *map(_cell, notes)]
    parts += [f"![Score by cost]({picture})"] if picture else []
    for table in tables:
        rule = ["---", *["---:" if table.numbers else "---"] * (len(table.header) - 1)]
        rows = [table.header, rule, *table.rows]
        parts += [f"## {table.title}", "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)]
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Return a text escaped for Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def _scores(summary: Summary) -> Iterator[tuple[str, ...]]:
    if summary.score is None:
        return
    name = str(summary.run.get("metric", "score"))
    yield name, value(summary.score.mean, summary), interval_text(summary.score.interval, summary)
    if len(summary.pass_at) > 1:
        yield from ((f"pass@{k}", f"{100 * share:.1f} %", "") for k, share in summary.pass_at.items())
    yield from ((figure, f"{number:.4g}", "") for figure, number in summary.figures.items())
    if summary.if_failed is not None:
        failed = " and ".join(f"{count} {kind}" for kind, count in summary.failures.items())
        score = summary.if_failed
        yield f"if failures ({failed}) scored 0", value(score.mean, summary), interval_text(score.interval, summary)


def _amounts(summary: Summary) -> Iterator[tuple[str, ...]]:
    usage = summary.usage
    yield "cost, USD", *_row(summary.cost, 4)
    if summary.user_cost.total:
        yield "cost of the simulated user or judge, USD", *_row(summary.user_cost, 4)
    if summary.run.get("feedback_model"):
        yield "cost of the feedback, USD", *_row(summary.feedback_cost, 4)
        yield "tokens of the feedback", *_row(summary.feedback_tokens, 0)
    yield "tokens", *_row(summary.tokens, 0)
    classes = {"read": usage.input, "read from a cache": usage.cache_read, "written to a cache": usage.cache_write}
    for name, count in {**classes, "written": usage.output}.items():
        if count:
            yield f"tokens {name}", f"{count * summary.tokens.mean / summary.tokens.total:,.0f}", f"{count:,}"
    yield "steps", *_row(summary.steps, 1)
    yield "seconds of wall time", *_row(summary.seconds, 1)


def _arms(summary: Summary) -> Iterator[tuple[str, ...]]:
    for one in summary.arms:
        score = one.score
        cells = value(score.mean, summary), interval_text(score.interval, summary), str(score.n), str(one.trials)
        yield one.arm, *cells


def flaky_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Return a row for each instance whose reference solution does not always score 1."""
    return [(name, f"{share} trials") for name, share in summary.flaky.items()]


def arm_notes(summary: Summary) -> Iterator[str]:
    """Yield notes about arms that did not score as they should, or were not run."""
    run = summary.run
    if not summary.arms and run.get("agent") not in ARMS:
        yield (
            "The arms oracle and empty have no run beside this one: nothing shows that its benchmark tells right from "
            f"wrong here. Run {run.get('benchmark')} with --agent empty, and with --agent oracle if it has reference "
            f"solutions, on --split {run.get('split')} with the same --data and --sandbox, and --out beside this run."
        )
    for one in summary.arms:
        if one.wrong:
            says = "scores less than 1" if one.arm == ORACLE else "scores more than 0"
            yield f"The arm {one.arm} {says} on {len(one.wrong)} of these instances: {_id_list(list(one.wrong))}."
        if not one.same_code:
            yield f"The arm {one.arm} ({one.folder}) ran with other code of Handiwork."


def _row(amount: Amount, digits: int) -> tuple[str, str]:
    return f"{amount.mean:,.{digits}f}", f"{amount.total:,.{digits}f}"


def cost_cells(summary: Summary) -> tuple[str, ...]:
    """Return USD, tokens and seconds of a rollout."""
    cost = f"{summary.cost.mean:,.4f}" + (f" and {summary.unpriced} of unknown price" if summary.unpriced else "")
    return cost, f"{summary.tokens.mean:,.0f}", f"{summary.seconds.mean:,.1f}"


def _facts(run: dict[str, JsonValue]) -> Iterator[tuple[str, ...]]:
    yield from ((key, fact) for key, item in run.items() if (fact := _fact(item)))


def _fact(item: JsonValue) -> str:
    """Return a value of the manifest as text, "" if it has none."""
    if isinstance(item, dict):
        return ", ".join(f"{key} {fact}" for key, one in item.items() if (fact := _fact(one)))
    if isinstance(item, list):
        return ", ".join(map(str, item))
    return "" if item is None else str(item)


def interval_text(interval: Interval | None, summary: Summary) -> str:
    """Return the bounds of an interval of scores."""
    if interval is None:
        return "none: all alike"
    return f"{value(interval.low, summary).removesuffix(' %')} to {value(interval.high, summary)}"


def change_text(change: float, summary: Summary) -> str:
    """Return a difference of scores."""
    return f"{change:+.3f}" if summary.run.get("metric") == "mean score" else f"{100 * change:+.1f} points"


def changes_text(interval: Interval | None, summary: Summary) -> str:
    """Return the bounds of an interval of differences."""
    if interval is None:
        return "none: all alike"
    return f"{change_text(interval.low, summary).removesuffix(' points')} to {change_text(interval.high, summary)}"


def _change_cells(change: ScoreChange, summary: Summary) -> tuple[str, ...]:
    scores = (value(score, summary) for score in (change.before, change.after))
    difference = change.difference
    return str(difference.n), *scores, change_text(difference.mean, summary), changes_text(difference.interval, summary)


def _flips(flips: Sequence[Flip], summary: Summary) -> list[tuple[str, ...]]:
    return [(flip.id, value(flip.before, summary), value(flip.after, summary)) for flip in flips]


def _id_list(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - LISTED_IDS} more" if len(ids) > LISTED_IDS else ""
    return ", ".join(ids[:LISTED_IDS]) + more
