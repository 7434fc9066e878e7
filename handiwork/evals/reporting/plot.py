"""Draws score by cost as SVG; it fetches nothing and is the same for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from handiwork.evals.reporting.summary import Estimate, Summary, estimate, mean, scores_of
from handiwork.evals.running.results import Result
from handiwork.evals.templates import render

LEFT, RIGHT, TOP, BOTTOM = 60.0, 690.0, 20.0, 240.0
"""The bounds of the plot, in units of the picture, which is 720 by 300."""
QUARTERS = ("cheapest quarter", "second", "third", "dearest quarter")


class Point(NamedTuple):
    """A score and the cost of one of its rollouts, in USD."""

    label: str
    cost: float
    score: Estimate


def point(summary: Summary, label: str) -> Point | None:
    """Return the point of a run, None if its score or its cost is unknown."""
    is_known = summary.score is not None and not summary.unpriced
    return Point(label, summary.cost.mean, summary.score) if is_known and summary.score else None


def quarters(results: Sequence[Result]) -> list[Point]:
    """Return a run's instances in four parts, from the cheapest to the dearest, none if costs hardly differ."""
    scored = [result for result in results if result.score is not None]
    trials, costs_by_id = scores_of(scored), dict[str, list[float]]()
    for result in scored:
        costs_by_id.setdefault(result.id, []).append(result.cost)
    costs = {one: mean(values) for one, values in costs_by_id.items()}
    if len(set(costs.values())) < 2 * len(QUARTERS) or any(result.unpriced for result in scored):
        return []
    order = sorted(costs, key=lambda one: (costs[one], one))
    points: list[Point] = []
    for number, label in enumerate(QUARTERS):
        part = order[number * len(order) // len(QUARTERS) : (number + 1) * len(order) // len(QUARTERS)]
        score = estimate({one: trials[one] for one in part})
        if score is not None:
            points.append(Point(label, mean([costs[one] for one in part]), score))
    return points


def draw(points: Sequence[Point]) -> str:
    """Return the points, each with its interval, as one SVG element; "" if there are none."""
    if not points:
        return ""
    step = _step(max(one.cost for one in points))
    ticks = [step * number for number in range(math.floor(max(one.cost for one in points) / step) + 2)]

    def x_of(cost: float) -> float:
        return LEFT + cost / ticks[-1] * (RIGHT - LEFT)

    return render(
        "picture.svg",
        bounds=(LEFT, RIGHT, TOP, BOTTOM),
        costs=[(round(x_of(tick), 1), f"${tick:.12g}") for tick in ticks],
        scores=[(_y_of(tick / 4), f"{25 * tick} %") for tick in range(5)],
        points=[
            {
                "label": one.label,
                "tooltip": f"{one.label}: {100 * one.score.mean:.1f} % for ${one.cost:.4g} a rollout",
                "x": round(x_of(one.cost), 1),
                "y": _y_of(one.score.mean),
                "bar": [_y_of(bound) for bound in one.score.interval or (one.score.mean, one.score.mean)],
            }
            for one in points
        ],
    )


def _y_of(score: float) -> float:
    return round(BOTTOM - score * (BOTTOM - TOP), 1)


def _step(maximum: float) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten, for three to eight of them."""
    if maximum <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(maximum / 3))
    return next(power * times for times in (5, 2, 1) if power * times <= maximum / 3 or times == 1)
