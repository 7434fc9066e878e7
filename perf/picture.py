"""Draws what a step costs as the session grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perf.steps import Run

SMOOTH = 25
"""Steps that each point of a line is the mean of."""
COLOURS = ("#0b6e4f", "#d17b0f", "#7a4fa3")


def draw(runs: Mapping[str, Run], file: Path) -> None:
    """Write the picture as SVG; it fetches nothing and is the same for the same numbers."""
    # Imported late: only who draws needs it.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "handiwork", "font.family": "sans-serif"})
    figure: Any = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, title, cost in zip(panels, ("CPU of all processes", "Wall time"), (Run.cpu, Run.wall), strict=True):
        for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
            steps, values = _line(run, [1000 * cost(run, step, step) for step in range(1, len(run.moments))])
            panel.plot(steps, values, label=name, color=colour)
        panel.set_title(title, fontsize=11)
        panel.set_xlabel("step")
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("milliseconds a step")
    panels[0].legend()
    figure.savefig(file, format="svg", metadata={"Date": None})


def _line(run: Run, values: Sequence[float]) -> tuple[list[int], list[float]]:
    spans = range(SMOOTH, len(values) + 1)
    return list(spans), [sum(values[end - SMOOTH : end]) / SMOOTH for end in spans]
