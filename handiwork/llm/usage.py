"""The tokens and the cost of a completion, as far as the figures its server told can be believed."""

from __future__ import annotations

from typing import Any

from handiwork.events.record import Usage

MOST_TOKENS = 10**9
"""Tokens of one class that one completion can have taken; no model has a window of this size."""

HIGHEST_COST = 10**6
"""USD that one completion can have cost."""


def usage_of(prompt: object, output: object, cache_read: object, cache_write: object) -> Usage:
    """Return the usage of a completion; ``prompt`` counts cached tokens too, and None is a missing figure.

    Where a figure is no count of tokens, or only one of prompt and output is there, the usage is unknown: no tokens,
    for which ``price`` knows no cost.
    """
    counts = [_count(figure) for figure in (prompt, output, cache_read or 0, cache_write or 0)]
    if None in counts:
        return Usage()
    whole, answered, read, written = (count or 0 for count in counts)
    return Usage(input=max(whole - read - written, 0), output=answered, cache_read=read, cache_write=written)


def cost_of(figure: object) -> float | None:
    """Return the USD that a server says a completion cost, None where it says none or what cannot be."""
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        return None
    # Compared, not converted: an integer of many digits has no float.
    return float(figure) if 0 <= figure <= HIGHEST_COST else None


def _count(figure: object) -> int | None:
    if isinstance(figure, float) and figure.is_integer():
        figure = int(figure)
    if isinstance(figure, bool) or not isinstance(figure, int):
        return None
    return figure if 0 <= figure <= MOST_TOKENS else None


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object, empty where the value is none."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] (keys of JSON are text)
