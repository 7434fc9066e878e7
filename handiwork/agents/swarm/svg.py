"""Draws a swarm and its learning curve as SVG; the same swarm gives the same picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from handiwork.agents.swarm.graph import DECISION, Swarm

WIDTH, HEIGHT, COLUMN, ROW, MARGIN = 104, 30, 152, 46, 20
"""A node's box, the distance of columns and rows, and the margin, in pixels."""

GREY, BLUE, RED = "#8a8f98", "#2563eb", "#dc2626"

RECENT = 10
"""Iterations in the moving average of the learning curve."""

Point = tuple[float, float]


def draw_graph(swarm: Swarm) -> str:
    """Return the most probable graph: a row or more for each agent, every arrow from left to right.

    Links are grey, edges above one half blue; edges to the decision have their probability, and are dashed below.
    Nodes that do not run, as no path leads from them to the decision, are faint.
    """
    graph = swarm.most_probable()
    places, running = _places(graph), set(graph.order())
    width = max(x for x, _ in places.values()) + WIDTH + MARGIN
    height = max(y for _, y in places.values()) + HEIGHT + 2 * MARGIN
    parts, faint = list[str](), list[str]()
    for a, b in swarm.links:
        (parts if b in running else faint).append(_link(places[a], places[b], GREY))
    for edge in swarm.edges:
        source, target, percent = places[edge.source], places[edge.target], f"{100 * edge.probability:.0f} %"
        is_drawn, title = (edge.source, edge.target) in graph.links, f"{edge.source} to {edge.target}: {percent}"
        if is_drawn or edge.target == DECISION:
            link = _link(source, target, BLUE if is_drawn else RED, title, dashed=not is_drawn)
            (parts if edge.target in running else faint).append(link)
        if edge.target == DECISION:
            parts.append(_text((source[0] + WIDTH + 4, source[1] + HEIGHT / 2 - 4), percent, size=10))
    for node in swarm.nodes:
        x, y = places[node.name]
        label = node.name.rpartition("/")[2] if node.name != DECISION else f"decision: {swarm.strategy}"
        box = f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f4f6fb" stroke="{GREY}"/>'
        (parts if node.name in running else faint).append(box)
        parts += [
            _text((x + WIDTH / 2, y + 19 + 11 * (number - 0.5) * (label.count(": "))), line, anchor="middle", size=11)
            for number, line in enumerate(label.replace("_", " ").split(": "))
        ]
    for agent in dict.fromkeys(node.agent for node in swarm.nodes if node.agent):
        y = min(places[node.name][1] for node in swarm.nodes if node.agent == agent)
        parts.append(_text((MARGIN, y - 4), agent, size=11, bold=True))
    missing = sum((edge.source, edge.target) not in graph.links for edge in swarm.edges if edge.target != DECISION)
    note = f"{missing} other edges between agents are not in this graph" if missing else ""
    parts.append(_text((MARGIN, height - 8), note, size=10))
    return _picture(width, height, ['<g opacity="0.4">', *faint, "</g>", *parts])


def draw_learning_curve(swarm: Swarm) -> str:
    """Return the mean score of each iteration as a dot, and the mean of the last RECENT iterations as a line."""
    left, right, top, bottom = 50.0, 700.0, 20.0, 220.0
    means = [iteration.mean for iteration in swarm.training.iterations]
    smooth = [sum(means[max(0, n - RECENT) : n]) / min(n, RECENT) for n in range(1, len(means) + 1)]

    def place(number: int, score: float) -> Point:
        return left + number / max(1, len(means) - 1) * (right - left), bottom - score * (bottom - top)

    parts: list[str] = []
    for quarter in range(5):
        _, y = place(0, quarter / 4)
        parts.append(f'<path d="M{left:g} {y:g}H{right:g}" stroke="#dfe3ea"/>')
        parts.append(_text((left - 6, y + 4), f"{25 * quarter} %", anchor="end", size=10))
    parts += [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{GREY}"/>' for x, y in map(place, range(len(means)), means)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, range(len(smooth)), smooth))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    caption = f"mean score of {len(means)} iterations, and the mean of the last {RECENT}; {swarm.training.cost:.2f} USD"
    parts.append(_text((left, bottom + 26), caption, size=11))
    return _picture(720, 260, parts)


def _places(graph: Swarm) -> dict[str, Point]:
    """Return the upper left corner of every node: its column is the longest path to it, its rows are its agent's."""
    columns: dict[str, int] = {}

    def column(name: str) -> int:
        if name not in columns:
            columns[name] = max((column(source) + 1 for source in graph.inputs_of(name)), default=0)
        return columns[name]

    places: dict[str, Point] = {}
    top = float(MARGIN)
    for agent in dict.fromkeys(node.agent for node in graph.nodes if node.name != DECISION):
        rows = Counter[int]()
        for node in graph.nodes:
            if node.agent == agent and node.name != DECISION:
                places[node.name] = MARGIN + column(node.name) * COLUMN, top + rows[column(node.name)] * ROW
                rows[column(node.name)] += 1
        top += max(rows.values()) * ROW + MARGIN / 2
    last = max((column(name) + 1 for name in places), default=0)
    places[DECISION] = MARGIN + last * COLUMN, max(float(MARGIN), (top - HEIGHT) / 2)
    return places


def _link(source: Point, target: Point, colour: str, title: str = "", *, dashed: bool = False) -> str:
    """Return an arrow from the right side of a box to the left side of another."""
    x, y, end, height = source[0] + WIDTH, source[1] + HEIGHT / 2, target[0], target[1] + HEIGHT / 2
    bend = max(30.0, abs(end - x) / 2)
    curve = f"M{x:g} {y:g}C{x + bend:g} {y:g} {end - bend:g} {height:g} {end:g} {height:g}"
    style = ' stroke-dasharray="3 4"' if dashed else ""
    arrow = f"M{end - 6:g} {height - 3:g}L{end:g} {height:g}L{end - 6:g} {height + 3:g}"
    tooltip = f"<title>{escape(title)}</title>" if title else ""
    return f'<g stroke="{colour}" fill="none">{tooltip}<path d="{curve}"{style}/><path d="{arrow}"/></g>'


def _text(at: Point, text: str, *, size: int, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{at[0]:g}" y="{at[1]:g}" font-size="{size}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _picture(width: float, height: float, parts: Sequence[str]) -> str:
    def lines() -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="sans-serif" fill="#1f2430">'
        )
        yield f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
        yield from parts
        yield "</svg>"

    return "\n".join(lines()) + "\n"
