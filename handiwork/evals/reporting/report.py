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
from handiwork.evals.reporting.plot import Point
from handiwork.evals.reporting.summary import Summary, ending, natural
from handiwork.evals.running.results import Result

NAME, COMPARISON = "report", "comparison"


def write(folder: Path, summary: Summary, results: Sequence[Result]) -> None:
    """Write report.md, .json, .html and, if costs differ, .svg into the run's folder.

    report.html is one file that fetches nothing, with all trajectories. Raises OSError.
    """
    order = sorted(results, key=lambda result: (natural(result.id), result.trial))
    content = _Content(tables.headline(summary), tables.notes(summary), tables.of_run(summary))
    _write(folder / NAME, content, summary.model_dump_json(indent=1), plot.quarters(order), order)


def write_comparison(folder: Path, comparison: Comparison, before: Summary, after: Summary) -> None:
    """Write comparison.md, .json, .html and, if both runs' costs are known, .svg into a folder. Raises OSError."""
    points = [plot.point(before, "before"), plot.point(after, "after")]
    known_points = [point for point in points if point is not None]
    content = _Content(tables.difference(comparison, before), [], tables.of_comparison(comparison, before, after))
    plotted = known_points if len(known_points) == len(points) and any(point.cost for point in known_points) else []
    _write(folder / COMPARISON, content, comparison.model_dump_json(indent=1), plotted, [])


class _Content(NamedTuple):
    """The content common to all forms of a report."""

    title: str
    notes: list[str]
    tables: list[tables.Table]


def _write(base: Path, content: _Content, data: str, points: Sequence[Point], results: Sequence[Result]) -> None:
    """Write the forms of a report as files named ``base`` with different suffixes."""
    picture, svg = plot.draw(points), base.with_suffix(".svg")
    svg.unlink(missing_ok=True)
    if picture:
        svg.write_text(picture)
    text = tables.markdown(*content, svg.name if picture else "")
    base.with_suffix(".md").write_text(text, errors="replace")
    base.with_suffix(".json").write_text(data + "\n")
    script = (templates.FOLDER / "report.js").read_text()
    templates.write(
        "report.html",
        base.with_suffix(".html"),
        words=content,
        picture=picture,
        style=(templates.FOLDER / "report.css").read_text(),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        results=[(result, ending(result)) for result in results],
        endings=sorted({ending(result) for result in results}),
        groups=sorted({result.group for result in results} - {""}, key=natural),
        trials=any(result.trial > 1 for result in results),
        rollouts=_rollouts(base.parent, results),
    )


def _rollouts(folder: Path, results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield the page's data of each rollout, one by one: all of them together may not fit into memory."""
    for result in results:
        file = folder / result.trajectory if result.trajectory else None
        yield {
            "name": f"{result.id}, trial {result.trial}" if result.trial > 1 else result.id,
            "ended": ending(result),
            "why": trajectory.harmless(result.why),
            "answer": trajectory.harmless(result.answer),
            "expected": trajectory.harmless(_expected(result)),
            "details": trajectory.harmless(json.dumps(result.details, ensure_ascii=False, indent=1)),
            "file": result.trajectory,
            "moments": trajectory.read(file) if file and file.is_file() else [],
        }


def _expected(result: Result) -> str:
    """Return the right answer, which benchmarks put into the details; "" if there is no single one."""
    truth = next((result.details[name] for name in ("truth", "right") if name in result.details), "")
    return str(truth)
