"""Draws score by cost as SVG; it fetches nothing and is the same for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from handiwork.evals.reporting.summary import Estimate, Summary, estimate, scores_of
from handiwork.evals.running.results import Result
from handiwork.evals.templates import render

LEFT, RIGHT, TOP, BOTTOM = 60.0, 690.0, 20.0, 240.0
"""The bounds of a panel's plot, in units of the picture."""
WIDTH, HEIGHT = 720.0, 300.0
"""The size of a panel."""
CHARACTER, LINE = 6.5, 14.0
"""The width of a label's character and the height of its line, about."""
LONGEST = 40
"""The characters of a label that are drawn."""
USD, TOKENS = "USD", "tokens"
QUARTERS = ("cheapest quarter", "second", "third", "dearest quarter")


class Point(NamedTuple):
    """A score and the cost of one of its rollouts, in USD or in tokens."""

    label: str
    cost: float
    score: Estimate


class Panel(NamedTuple):
    """Points that share axes; their cost is in the ``unit``, USD or TOKENS."""

    points: Sequence[Point]
    title: str = ""
    unit: str = USD


class _DrawnPoint(NamedTuple):
    """A point in the units of the picture: ``bar`` are the ends of its interval, the lower score first."""

    label: str
    tooltip: str
    x: float
    y: float
    bar: tuple[float, ...]


def panel(summaries: Mapping[str, Summary], title: str = "") -> Panel:
    """Return the runs by their labels as a panel: in USD if all costs are known and one is not 0, else in tokens."""
    known = all(not one.unpriced for one in summaries.values()) and any(one.cost.total for one in summaries.values())
    points = [
        Point(label, one.cost.mean if known else one.tokens.mean, one.score)
        for label, one in summaries.items()
        if one.score is not None
    ]
    return Panel(points, title, USD if known else TOKENS)


def quarters(results: Sequence[Result]) -> list[Point]:
    """Return a run's instances in four parts, from the cheapest to the dearest, none if costs hardly differ."""
    scored = [result for result in results if result.score is not None]
    trials, costs_by_id = scores_of(scored), dict[str, list[float]]()
    for result in scored:
        costs_by_id.setdefault(result.id, []).append(result.cost)
    costs = {one: fmean(values) for one, values in costs_by_id.items()}
    if len(set(costs.values())) < 2 * len(QUARTERS) or any(result.unpriced for result in scored):
        return []
    order = sorted(costs, key=lambda one: (costs[one], one))
    points: list[Point] = []
    for number, label in enumerate(QUARTERS):
        part = order[number * len(order) // len(QUARTERS) : (number + 1) * len(order) // len(QUARTERS)]
        score = estimate({one: trials[one] for one in part})
        if score is not None:
            points.append(Point(label, fmean([costs[one] for one in part]), score))
    return points


def draw(panels: Sequence[Panel]) -> str:
    """Return the panels, one below the other, as one SVG element; without those that cost nothing; "" for none."""
    drawn = [_drawn(panel) for panel in panels if any(point.cost for point in panel.points)]
    if not drawn:
        return ""
    return render("picture.svg", bounds=(LEFT, RIGHT, TOP, BOTTOM), height=HEIGHT, panels=drawn)


class _Box(NamedTuple):
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        """Return whether the two have an area in common."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class _Label(NamedTuple):
    """The place of a label, with SVG's text-anchor; ``leader`` tells whether a line joins it to its bar."""

    x: float
    y: float
    anchor: str
    box: _Box
    leader: bool


def _drawn(panel: Panel) -> dict[str, Any]:
    """Return the numbers and texts of a panel as its template needs them."""
    step = _step(max(one.cost for one in panel.points))
    ticks = [step * number for number in range(math.floor(max(one.cost for one in panel.points) / step) + 2)]
    money = panel.unit == USD
    points = [
        _DrawnPoint(
            one.label[:LONGEST],
            f"{one.label}: {100 * one.score.mean:.1f} % for "
            + (f"${one.cost:.4g} a rollout" if money else f"{one.cost:,.0f} {panel.unit} a rollout"),
            round(LEFT + one.cost / ticks[-1] * (RIGHT - LEFT), 1),
            _y_of(one.score.mean),
            tuple(_y_of(bound) for bound in one.score.interval or (one.score.mean, one.score.mean)),
        )
        for one in panel.points
    ]
    return {
        "title": panel.title,
        "axis": f"mean cost of a rollout, {panel.unit}; score with its 95 % interval",
        "costs": [
            (round(LEFT + tick / ticks[-1] * (RIGHT - LEFT), 1), f"${tick:.12g}" if money else f"{tick:,.0f}")
            for tick in ticks
        ],
        "scores": [(_y_of(tick / 4), f"{25 * tick} %") for tick in range(5)],
        "points": list(zip(points, _labels(points), strict=True)),
    }


def _labels(points: Sequence[_DrawnPoint]) -> list[_Label]:
    """Return each point's label: above, below or beside its bar, so that it covers no label and no other bar."""
    taken: list[_Box] = []
    labels: list[_Label] = []
    for point in points:
        bars = [_Box(one.x - 5, one.bar[1] - 5, one.x + 5, one.bar[0] + 5) for one in points if one is not point]
        places = list(_places(point))
        free = (one for one in places if not any(one.box.meets(other) for other in (*taken, *bars)))
        apart = (one for one in places if not any(one.box.meets(other) for other in taken))
        label = next(free, None) or next(apart, places[0])
        taken.append(label.box)
        labels.append(label)
    return labels


def _places(point: _DrawnPoint) -> Iterator[_Label]:
    """Yield the places for a point's label within the panel, the best first."""
    width = CHARACTER * len(point.label)
    shift = {"start": 0.0, "middle": width / 2, "end": width}
    centred = "start" if point.x - width / 2 < LEFT else "end" if point.x + width / 2 > RIGHT else "middle"
    for row in range(int((BOTTOM - TOP) / LINE)):
        levels = point.bar[1] - 10 - row * LINE, point.bar[0] + 5 + LINE + row * LINE
        tries = [(point.x, y, centred) for y in levels]
        tries += [(x, y, side) for x, side in ((point.x + 8, "start"), (point.x - 8, "end")) for y in levels]
        for x, y, anchor in tries:
            left = x - shift[anchor]
            if LINE <= y <= BOTTOM - 5 and left >= LEFT and left + width <= WIDTH:
                box = _Box(left, y - LINE + 2, left + width, y + 2)
                yield _Label(x, round(y, 1), anchor, box, leader=row > 0 and x == point.x)


def _y_of(score: float) -> float:
    return round(BOTTOM - score * (BOTTOM - TOP), 1)


def _step(maximum: float) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten, for three to eight of them."""
    if maximum <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(maximum / 3))
    return next(power * times for times in (5, 2, 1) if power * times <= maximum / 3 or times == 1)
