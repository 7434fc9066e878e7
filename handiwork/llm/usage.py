"""The tokens and the cost of a completion, if the server's figures are plausible."""

from __future__ import annotations

from typing import Any

from handiwork.events.record import Usage

MOST_TOKENS = 10**9
"""The most plausible tokens of one class in one completion; no model has a window of this size."""

HIGHEST_COST = 10**6
"""The highest plausible cost of one completion in USD."""


def usage_of(prompt: object, output: object, cache_read: object, cache_write: object) -> Usage:
    """Return the usage of a completion; ``prompt`` includes cached tokens, and None is a missing figure.

    If a figure is not a valid count of tokens, or only one of prompt and output is given, the usage is unknown: zero
    tokens, for which ``price`` knows no cost.
    """
    counts = [_count(figure) for figure in (prompt, output, cache_read or 0, cache_write or 0)]
    if None in counts:
        return Usage()
    prompt_count, output_count, read_count, write_count = (count or 0 for count in counts)
    return Usage(
        input=max(prompt_count - read_count - write_count, 0),
        output=output_count,
        cache_read=read_count,
        cache_write=write_count,
    )


def cost_of(figure: object) -> float | None:
    """Return the cost in USD that a server reports for a completion, None if it is missing or implausible."""
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        return None
    # Compared before the conversion: an integer of many digits has no float.
    return float(figure) if 0 <= figure <= HIGHEST_COST else None


def _count(figure: object) -> int | None:
    if isinstance(figure, float) and figure.is_integer():
        figure = int(figure)
    if isinstance(figure, bool) or not isinstance(figure, int):
        return None
    return figure if 0 <= figure <= MOST_TOKENS else None


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] (keys of JSON are text)
