"""Elements that a goal describes instead of naming: by position, by an extreme, or as a day in a calendar."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import replace

from handiwork.agents.browsing.choices import ElementChoice, Page, offered

DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")

_KINDS = {
    "textbox": ("fill", ("textbox", "searchbox")),
    "text box": ("fill", ("textbox", "searchbox")),
    "text field": ("fill", ("textbox", "searchbox")),
    "checkbox": ("check", ("checkbox",)),
    "radio button": ("check", ("radio",)),
    "button": ("click", ("button",)),
    "link": ("click", ("link",)),
    "tab": ("click", ("tab",)),
}
_ORDINAL = re.compile(
    rf"\b(?P<nth>\d+)(?:st|nd|rd|th) (?:input |html )?(?P<what>{'|'.join(sorted(_KINDS, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
_ADDS = frozenset({"+", "add", "add to cart"})
_LEAST = re.compile(r"\b(cheapest|lowest|least|smallest|minimum|shortest|fewest)\b", re.IGNORECASE)
_MOST = re.compile(r"\b(most expensive|highest|greatest|largest|biggest|maximum|longest)\b", re.IGNORECASE)
_SPAN = re.compile(r"\b(?:(\d+) ?h)?(?: ?(\d+) ?m)?\b")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LENGTH = re.compile(r"\b(shortest|longest)\b", re.IGNORECASE)
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}
_MONTH_NAME = re.compile(rf"\b({'|'.join(_MONTHS)})\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_BACK, _ON = re.compile(r"\b(prev|previous|earlier|back)\b", re.IGNORECASE), re.compile(r"\bnext\b", re.IGNORECASE)


def nth(goal: str, can: Sequence[ElementChoice]) -> list[tuple[int, ElementChoice]]:
    """Return the choices that the goal calls the nth of a kind, with their positions in the goal."""
    found: list[tuple[int, ElementChoice]] = []
    for match in _ORDINAL.finditer(goal):
        kind, roles = _KINDS[match["what"].lower()]
        alike = [choice for choice in can if choice.role in roles and choice.kind in (kind, "uncheck")]
        number = int(match["nth"])
        if 0 < number <= len(alike) and alike[number - 1].kind == kind:
            found.append((match.start(), alike[number - 1]))
    return found


def of_role(quotes: Sequence[str], can: Sequence[ElementChoice]) -> ElementChoice | None:
    """Return the first choice of which the goal quotes the role, not the name."""
    wanted = {quote.lower() for quote in quotes}
    return next((choice for choice in can if choice.role.lower() in wanted), None)


def added(goal: str, page: Page) -> list[tuple[int, ElementChoice]]:
    """Return the buttons that add an item of the goal and follow its name on the page, with the name's position."""
    found: list[tuple[int, ElementChoice]] = []
    before = ""
    for part in page:
        if isinstance(part, str):
            before = part if part in goal else "" if len(part) > 1 and " " in part else before
        elif part.name.lower() in _ADDS and len(before) > 1:
            found.append((goal.index(before), part))
            before = ""
    return found


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


def towards_date(goal: str, page: Page, *, paged: bool = False) -> tuple[ElementChoice, str] | None:
    """Return the move that opens a calendar or brings it nearer to the goal's date; None without one.

    Most calendars page by keys, many months at a time; ``paged`` says that keys were tried on this very page.
    """
    wanted = DATE.search(goal)
    if wanted is None:
        return None
    month, day, year = (int(part) for part in wanted.groups())
    shown = shown_month(page)
    clicks = [choice for choice in offered(page) if choice.kind == "click"]
    boxes = [choice for choice in clicks if choice.role.lower() == "textbox"]
    if any(box.value == wanted[0] for box in boxes):
        return None
    if shown is None:
        return (boxes[0], "") if boxes else None
    if shown != (year, month):
        months = 12 * (year - shown[0]) + month - shown[1]
        if boxes and abs(months) > 1 and not paged:
            return replace(boxes[0], kind="press"), " ".join(["PageDown" if months > 0 else "PageUp"] * abs(months))
        turn = _ON if shown < (year, month) else _BACK
        turns = [choice for choice in clicks if turn.search(choice.name)]
        return (turns[0], "") if turns else None
    days = [choice for choice in clicks if choice.name == str(day)]
    return (days[0], "") if days else None


def shown_month(page: Page) -> tuple[int, int] | None:
    """Return the year and month that a calendar on the page shows."""
    text = " ".join(part for part in page if isinstance(part, str))
    for month in _MONTH_NAME.finditer(text):
        if year := _YEAR.match(text[month.end() :].lstrip(" ,")):
            return int(year[0]), _MONTHS[month[0].lower()]
    return None
