"""Goals for an extreme: the cheapest, the shortest, the largest of several elements of one kind."""

from __future__ import annotations

import re

from handiwork.agents.browsing.choices import ElementChoice, Page

_LEAST = re.compile(r"\b(cheapest|lowest|least|smallest|minimum|shortest|fewest)\b", re.IGNORECASE)
_MOST = re.compile(r"\b(most expensive|highest|greatest|largest|biggest|maximum|longest)\b", re.IGNORECASE)
_SPAN = re.compile(r"\b(?:(\d+) ?h)?(?: ?(\d+) ?m)?\b")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LENGTH = re.compile(r"\b(shortest|longest)\b", re.IGNORECASE)


def extreme(goal: str, page: Page) -> tuple[ElementChoice, str] | None:
    """Return the element to click among similar ones with a number each, if the goal asks for an extreme."""
    least, most = _LEAST.search(goal), _MOST.search(goal)
    if least is None and most is None:
        return None
    measure = _minutes if _LENGTH.search(goal) else _amount
    kinds: dict[str, list[tuple[float, ElementChoice]]] = {}
    before: list[str] = []
    for part in page:
        if isinstance(part, str):
            before.append(part)
            continue
        size = measure(part.name)
        if size is None:
            size = measure(" ".join(before))
        before = []
        if part.kind == "click" and size is not None:
            kinds.setdefault(re.sub(r"[\d,.]+", "#", part.name), []).append((size, part))
    alike = max(kinds.values(), key=len) if kinds else ()
    if len(alike) < 2:
        return None
    return (min if least else max)(alike, key=lambda one: one[0])[1], ""


def _amount(text: str) -> float | None:
    found = re.search(r"\$ ?(\d[\d,]*(?:\.\d+)?)", text)
    number = found[1] if found else (match[0] if (match := _NUMBER.search(text)) else None)
    return None if number is None else float(number.replace(",", ""))


def _minutes(text: str) -> float | None:
    spans = [match for match in _SPAN.finditer(text) if match[1] or match[2]]
    return None if not spans else 60.0 * int(spans[-1][1] or 0) + int(spans[-1][2] or 0)
