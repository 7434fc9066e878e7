"""Reports of a matrix: one table, one picture, paired differences, and a page with all trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from handiwork.evals.reporting import plot, report, tables
from handiwork.evals.reporting.compare import CompareError, ScoreChange, compare
from handiwork.evals.reporting.report import Grid, ReportContent, ShownRollout
from handiwork.evals.reporting.statistics import RESAMPLES
from handiwork.evals.reporting.summary import Summary, natural
from handiwork.evals.reporting.tables import Table
from handiwork.evals.running.matrix import MatrixCell
from handiwork.evals.running.results import Result
from handiwork.events.base import Model

NAME = "matrix-report"


class MeasuredCell(NamedTuple):
    """A cell of a matrix with its results so far."""

    cell: MatrixCell
    summary: Summary
    results: Sequence[Result]


class CellSummary(Model):
    """The summary of a cell; ``folder`` is that of its run, relative to the matrix's."""

    benchmark: str
    agent: str
    folder: str
    summary: Summary


class PairedDifference(ScoreChange):
    """The scores of two agents, ``first`` and ``second``, on the instances of a benchmark that both measured.

    ``p`` is that of McNemar's exact test, None unless every instance's score is 0 or 1.
    """

    benchmark: str
    first: str
    second: str
    p: float | None


class MatrixSummary(Model):
    """The summary of a matrix: its cells, the arms among them, and each pair of agents on each benchmark.

    ``missing`` are the cells that have no result yet, as "AGENT on BENCHMARK".
    """

    cells: list[CellSummary]
    pairs: list[PairedDifference]
    missing: list[str]


def summarise(cells: Sequence[MeasuredCell], missing: Sequence[MatrixCell] = ()) -> MatrixSummary:
    """Return the summary of the cells that have results; ``missing`` are the others."""
    shown = [
        CellSummary(benchmark=cell.benchmark, agent=cell.agent, folder=str(cell.folder), summary=summary)
        for cell, summary, _ in cells
    ]
    names = [f"{cell.agent} on {cell.benchmark}" for cell in missing]
    return MatrixSummary(cells=shown, pairs=list(_pairs(cells)), missing=names)


def write(out: Path, cells: Sequence[MeasuredCell], summary: MatrixSummary) -> tuple[ReportContent, Path]:
    """Write matrix-report.md, .json, .html and .svg into the matrix's folder; return their content, and the page.

    The page is one file that fetches nothing, with the agents' trajectories. Raises OSError.
    """
    agents = [cell for cell in cells if not cell.cell.is_arm]
    content = ReportContent(_headline(agents), list(_notes(cells, summary)), list(_tables(cells, summary)))
    panels = [
        plot.panel({one.cell.agent: one.summary for one in of_benchmark}, benchmark)
        for benchmark, of_benchmark in _by_benchmark(agents)
    ]
    shown = [
        ShownRollout(result, str(one.cell.folder), (benchmark, one.cell.agent), result.id in one.summary.flaky)
        for benchmark, of_benchmark in _by_benchmark(agents)
        for one in of_benchmark
        for result in sorted(one.results, key=lambda result: (natural(result.id), result.trial))
    ]
    base = out / NAME
    report.write_forms(base, content, summary.model_dump_json(indent=1), panels, shown, list(_grids(shown)))
    return content, base.with_suffix(".html")


def _by_benchmark(cells: Sequence[MeasuredCell]) -> list[tuple[str, list[MeasuredCell]]]:
    names = dict.fromkeys(one.cell.benchmark for one in cells)
    return [(name, [one for one in cells if one.cell.benchmark == name]) for name in names]


def _pairs(cells: Sequence[MeasuredCell]) -> Iterator[PairedDifference]:
    for benchmark, of_benchmark in _by_benchmark([one for one in cells if not one.cell.is_arm]):
        for first, second in combinations(of_benchmark, 2):
            try:
                change = compare(first.results, second.results)
            except CompareError:
                continue
            yield PairedDifference(
                benchmark=benchmark,
                first=first.cell.agent,
                second=second.cell.agent,
                before=change.before,
                after=change.after,
                difference=change.difference,
                p=change.p,
            )


def _headline(agents: Sequence[MeasuredCell]) -> str:
    names = {one.cell.agent for one in agents}
    benchmarks = ", ".join(dict.fromkeys(one.cell.benchmark for one in agents))
    return f"{len(names)} agent{'s' * (len(names) > 1)} on {benchmarks} with {agents[0].cell.conditions.model}"


def _notes(cells: Sequence[MeasuredCell], summary: MatrixSummary) -> Iterator[str]:
    if summary.missing:
        yield f"The matrix is not complete: there is no result of {', '.join(summary.missing)}."
    yield (
        "Intervals are of 95 %: Wilson's for the share of instances solved in one trial each, otherwise the percentile "
        f"bootstrap over the instances, {RESAMPLES:,} resamples. Differences are paired: both agents on the same "
        "instances. The p of McNemar's exact test is not corrected for the number of pairs."
    )
    for benchmark, of_benchmark in _by_benchmark([one for one in cells if not one.cell.is_arm]):
        first = of_benchmark[0]
        yield from (f"{benchmark}: {note}" for note in tables.arm_notes(first.summary))
        for one in of_benchmark:
            if missing := one.summary.wanted - one.summary.measured:
                yield f"{benchmark}: {one.cell.agent} has no score on {missing} of {one.summary.wanted} instances."
            if one.summary.run.get("code") != first.summary.run.get("code"):
                yield f"{benchmark}: {one.cell.agent} ran with another version of Handiwork than {first.cell.agent}."
            for notes in (tables.trial_notes, tables.limit_notes, tables.change_notes):
                yield from (f"{benchmark}: {one.cell.agent}: {note}" for note in notes(one.summary))


def _tables(cells: Sequence[MeasuredCell], summary: MatrixSummary) -> Iterator[Table]:
    groups = _by_benchmark(cells)
    if len(groups) > 1:
        names = dict.fromkeys(one.cell.agent for one in sorted(cells, key=lambda one: one.cell.is_arm))
        rows = [
            (name, *(_score(next((one for one in group if one.cell.agent == name), None)) for _, group in groups))
            for name in names
        ]
        yield Table("All scores", ("agent", *(benchmark for benchmark, _ in groups)), rows)
    header = ("agent", "score (interval)", "measured", "lost", "cut off", "USD", "tokens", "seconds", "steps")
    for benchmark, group in groups:
        of_group = sorted(group, key=lambda one: one.cell.is_arm)
        yield Table(f"{benchmark}, a rollout", header, [_row(one) for one in of_group])
        pairs = [pair for pair in summary.pairs if pair.benchmark == benchmark]
        if pairs:
            changes = ("first → second", "instances", "first", "second", "difference", "95 % interval", "p")
            yield Table(f"{benchmark}, pairs", changes, [_pair_row(pair, group[0].summary) for pair in pairs])
        if flaky := tables.flaky_rows(group[-1].summary):
            yield Table(f"{benchmark}, flaky instances", ("instance", "its reference solution scored 1 in"), flaky)


def _score(one: MeasuredCell | None) -> str:
    if one is None or one.summary.score is None:
        return ""
    score = one.summary.score
    interval = tables.interval_text(score.interval, one.summary).removesuffix(" %")
    return f"{tables.value(score.mean, one.summary)} ({interval})"


def _row(one: MeasuredCell) -> tuple[str, ...]:
    summary = one.summary
    return (
        one.cell.agent,
        _score(one),
        f"{summary.measured} of {summary.wanted}",
        str(sum(summary.failures.values())),
        str(summary.cut_off),
        *tables.cost_cells(summary),
        f"{summary.steps.mean:,.1f}",
    )


def _pair_row(pair: PairedDifference, summary: Summary) -> tuple[str, ...]:
    change = pair.difference
    return (
        f"{pair.first} → {pair.second}",
        str(change.n),
        tables.value(pair.before, summary),
        tables.value(pair.after, summary),
        tables.change_text(change.mean, summary),
        tables.changes_text(change.interval, summary),
        "" if pair.p is None else f"{pair.p:.3g}",
    )


def _grids(shown: Sequence[ShownRollout]) -> Iterator[Grid]:
    """Yield a grid for each benchmark: a row for each instance, with links to its rollouts by each agent."""
    for name in dict.fromkeys(one.cell[0] for one in shown if one.cell):
        rollouts = [(number, one.cell[1], one) for number, one in enumerate(shown) if one.cell and one.cell[0] == name]
        agents = list(dict.fromkeys(agent for _, agent, _ in rollouts))
        cells: dict[str, dict[str, list[tuple[int, str]]]] = {}
        for number, agent, one in rollouts:
            score = one.result.outcome if one.result.score is None else f"{one.result.score:.4g}"
            row = cells.setdefault(f"{one.result.id}{' (flaky)' if one.flaky else ''}", {})
            row.setdefault(agent, []).append((number, score))
        rows = [(row, [cells[row].get(agent, []) for agent in agents]) for row in sorted(cells, key=natural)]
        yield Grid(f"{name}, by instance", agents, rows)
