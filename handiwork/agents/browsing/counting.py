"""Elements that a goal calls by position, not by name: the 2nd text box, the + beside a named dish."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handiwork.agents.browsing.choices import ElementChoice, Page

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
