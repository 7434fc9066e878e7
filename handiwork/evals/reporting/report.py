"""Writes reports of a run, or of a comparison of two, for people and for programs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from handiwork.evals import templates
from handiwork.evals.reporting import plot, tables, trajectory
from handiwork.evals.reporting.compare import Comparison
from handiwork.evals.reporting.plot import Panel
from handiwork.evals.reporting.summary import Summary, ending, natural
from handiwork.evals.running.results import Result, rollout_name

NAME, COMPARISON = "report", "comparison"

FLAKY = "the reference solution of this instance does not always score 1"


class ShownRollout(NamedTuple):
    """A rollout on a page: ``folder`` is its run's, relative to the page's.

    ``cell`` is its benchmark and agent, None unless the page has several. ``flaky`` tells whether the reference
    solution of its instance does not always score 1.
    """

    result: Result
    folder: str = ""
    cell: tuple[str, str] | None = None
    flaky: bool = False


class ReportContent(NamedTuple):
    """The content common to all forms of a report."""

    title: str
    notes: list[str]
    tables: list[tables.Table]


class Grid(NamedTuple):
    """A table of links to rollouts: each cell of a row has their numbers on the page and their scores."""

    title: str
    header: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[tuple[int, str]]]]]


def write(folder: Path, summary: Summary, results: Sequence[Result]) -> None:
    """Write report.md, .json, .html and, if costs differ, .svg into the run's folder.

    report.html is one file that fetches nothing, with all trajectories. Raises OSError.
    """
    order = sorted(results, key=lambda result: (natural(result.id), result.trial))
    content = ReportContent(tables.headline(summary), tables.notes(summary), tables.of_run(summary))
    panel = plot.Panel(plot.quarters(order))
    shown = [ShownRollout(result, flaky=result.id in summary.flaky) for result in order]
    write_forms(folder / NAME, content, summary.model_dump_json(indent=1), [panel], shown)


def write_comparison(folder: Path, comparison: Comparison, before: Summary, after: Summary) -> None:
    """Write comparison.md, .json, .html and, if the runs cost anything, .svg into a folder. Raises OSError."""
    notes = list(tables.comparison_notes(before, after))
    content = ReportContent(
        tables.difference(comparison, before), notes, tables.of_comparison(comparison, before, after)
    )
    panel = plot.panel({"before": before, "after": after})
    write_forms(folder / COMPARISON, content, comparison.model_dump_json(indent=1), [panel], [])


def write_forms(
    base: Path,
    content: ReportContent,
    data: str,
    panels: Sequence[Panel],
    rollouts: Sequence[ShownRollout],
    grids: Sequence[Grid] = (),
) -> None:
    """Write the forms of a report as files named ``base`` with different suffixes. Raises OSError."""
    picture, svg = plot.draw(panels), base.with_suffix(".svg")
    svg.unlink(missing_ok=True)
    if picture:
        svg.write_text(picture)
    text = tables.markdown(*content, svg.name if picture else "")
    base.with_suffix(".md").write_text(text, errors="replace")
    base.with_suffix(".json").write_text(data + "\n")
    script = (templates.FOLDER / "report.js").read_text()
    cells = [one.cell for one in rollouts if one.cell is not None]
    templates.write(
        "report.html",
        base.with_suffix(".html"),
        words=content,
        picture=picture,
        style=(templates.FOLDER / "report.css").read_text(),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        grids=grids,
        rows=[(one, ending(one.result)) for one in rollouts],
        endings=sorted({ending(one.result) for one in rollouts}),
        groups=sorted({one.result.group for one in rollouts} - {""}, key=natural),
        benchmarks=list(dict.fromkeys(benchmark for benchmark, _ in cells)),
        agents=list(dict.fromkeys(agent for _, agent in cells)),
        trials=any(one.result.trial > 1 for one in rollouts),
        rollouts=_rollouts(base.parent, rollouts),
    )


def _rollouts(folder: Path, rollouts: Sequence[ShownRollout]) -> Iterator[dict[str, Any]]:
    """Yield the page's data of each rollout, one by one: all of them together may not fit into memory."""
    for one in rollouts:
        result = one.result
        path = str(Path(one.folder, result.trajectory)) if result.trajectory else ""
        name = rollout_name(result.key)
        yield {
            "name": name if one.cell is None else f"{one.cell[1]} on {one.cell[0]}: {name}",
            "ended": ending(result),
            "why": trajectory.harmless(result.why),
            "answer": trajectory.harmless(result.answer),
            "expected": trajectory.harmless(result.expected),
            "details": trajectory.harmless(json.dumps(result.details, ensure_ascii=False, indent=1)),
            "flaky": FLAKY if one.flaky else "",
            "file": path,
            "moments": trajectory.read(folder / path) if path and (folder / path).is_file() else [],
        }
