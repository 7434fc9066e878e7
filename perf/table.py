"""Rows of measurements and how a table shows them: values side by side, ratios to ours, targets."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, float]
"""What was measured, by the contender's name; who could not be measured is left out."""


@dataclass(frozen=True)
class Target:
    """What ours has to be; ``holds`` gets what all have."""

    text: str
    holds: Callable[[Values], bool]


@dataclass(frozen=True)
class Row:
    """One thing that was measured. ``part`` is the command's argument that measures it again."""

    part: str
    what: str
    unit: str
    values: Values
    target: Target | None = None


def under(ours: str, limit: float, inclusive: bool = False) -> Target:
    """Return the target that ``ours`` stays under a limit, in the row's unit."""
    below = operator.le if inclusive else operator.lt
    sign = "<=" if inclusive else "<"
    return Target(f"{sign} {limit:g}", lambda values: below(values[ours], limit))


def shown(value: float | None) -> str:
    """Return a number with three digits that mean something, a dash for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{3 - len(str(int(abs(value))))}f}"


def ratio(row: Row, ours: str, other: str) -> float | None:
    """Return how many times ours the other's value is; None where one of them is missing or ours is nothing."""
    mine, theirs = row.values.get(ours), row.values.get(other)
    return theirs / mine if mine and theirs is not None else None


def verdict(row: Row, ours: str) -> str:
    """Return the target and whether it is met; nothing where there is none."""
    if row.target is None:
        return ""
    try:
        return f"{row.target.text}: {'met' if row.target.holds(row.values) else '**missed**'}"
    except KeyError:
        return f"{row.target.text}: not measured"


def markdown(rows: Iterable[Row], names: Sequence[str]) -> str:
    """Return the table with aligned columns; the first of ``names`` is ours."""
    ours, *others = names
    lines = [["measured with", "", *names, *(f"{other} / {ours}" for other in others), "target"]]
    for row in rows:
        ratios = [ratio(row, ours, other) for other in others]
        lines.append(
            [
                row.part,
                f"{row.what}, {row.unit}" if row.unit else row.what,
                *(shown(row.values.get(name)) for name in names),
                *("-" if one is None else f"{shown(one)}x" for one in ratios),
                verdict(row, ours),
            ]
        )
    return aligned(lines, numbers=range(2, 2 + len(names) + len(others)))


def aligned(lines: list[list[str]], numbers: range) -> str:
    """Return lines of cells as a Markdown table; the columns of ``numbers`` stand at the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def text(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + (":" if column in numbers else "-") for column, width in enumerate(widths)]
    return "\n".join([text(lines[0]), text(rule), *map(text, lines[1:])])


def as_json(row: Row, names: Sequence[str]) -> dict[str, Any]:
    """Return the row as a JSON object, with the ratios to ours."""
    ours, *others = names
    try:
        met = row.target.holds(row.values) if row.target else None
    except KeyError:
        met = None
    return {
        "part": row.part,
        "what": row.what,
        "unit": row.unit,
        "values": dict(row.values),
        "ratios": {other: ratio(row, ours, other) for other in others},
        "target": row.target.text if row.target else None,
        "met": met,
    }
