"""Calendars: page through the months to a date, and click the day."""

from __future__ import annotations

import calendar
import re
from dataclasses import replace

from handiwork.agents.browsing.choices import ElementChoice, Page, offered

_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_NUMBERS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}
_MONTH = re.compile(rf"\b({'|'.join(_NUMBERS)})\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_BACK, _ON = re.compile(r"\b(prev|previous|earlier|back)\b", re.IGNORECASE), re.compile(r"\bnext\b", re.IGNORECASE)


def towards_date(goal: str, page: Page, *, paged: bool = False) -> tuple[ElementChoice, str] | None:
    """Return the move that opens a calendar or brings it nearer to the goal's date; None without one.

    Most calendars page by keys, many months at a time; ``paged`` says that keys were tried on this very page.
    """
    wanted = _DATE.search(goal)
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
    for month in _MONTH.finditer(text):
        if year := _YEAR.match(text[month.end() :].lstrip(" ,")):
            return int(year[0]), _NUMBERS[month[0].lower()]
    return None
