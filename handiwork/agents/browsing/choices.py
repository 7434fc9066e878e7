"""What can be done on a page, each thing with a line of its own that a model can choose by copying it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from handiwork.agents.browsing.elements import CHECKED, CHOSEN, CLICKED, FILLED, Element, elements

Kind = Literal["click", "check", "uncheck", "fill", "select", "scroll"]

NAME = 60
"""Characters of an element's name in a choice."""
SCROLL = 150
"""Pixels of a scroll: less than the smallest window is high."""

_MORE = re.compile(r"^\.\.\..*\b(above|below)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be done; ``names`` are the texts by which a person may call what it is done to."""

    kind: Kind
    shown: str
    bid: str = ""
    role: str = ""
    names: tuple[str, ...] = ()
    value: str = ""
    options: tuple[str, ...] = ()

    def calls(self, text: str = "") -> str:
        """Return the call of the browser's language that does it; ``text`` is what to fill in or select."""
        match self.kind:
            case "fill":
                return f"fill({self.bid!r}, {text!r})"
            case "select":
                return f"select_option({self.bid!r}, {text!r})"
            case "scroll":
                return f"scroll(0, {SCROLL if self.shown.endswith('down') else -SCROLL})"
            case _:
                return f"{self.kind}({self.bid!r})"


def choices(tree: str) -> list[Choice]:
    """Return what can be done on a page, in its order; scrolling last, where there is more of the page."""
    found: list[Choice] = []
    nodes = elements(tree)
    for at, node in enumerate(nodes):
        if node.bid and not node.has("disabled") and (kind := _kind(node)) is not None:
            names = _names(nodes, at)
            label = f" {names[0][:NAME]!r}" if names else ""
            choice = Choice(kind, f"{kind} [{node.bid}] {node.role}{label}", node.bid, node.role, names)
            found.append(replace(choice, value=node.value, options=node.options))
    outer = {choice.bid for choice in found if _holds_another(choice, nodes, found)}
    more = dict.fromkeys(_MORE.findall(tree))
    scrolls = [Choice("scroll", f"scroll {'down' if where == 'below' else 'up'}") for where in more]
    return [*(choice for choice in found if choice.bid not in outer), *scrolls]


def _kind(node: Element) -> Kind | None:
    role = node.role.lower()
    if role in FILLED:
        return None if node.has("readonly") else "fill"
    if role in CHOSEN and node.options:
        return "select"
    if role in CHOSEN:
        return "fill" if role == "combobox" else None
    if role in CHECKED:
        return "uncheck" if node.checked and role == "checkbox" else None if node.checked else "check"
    return "click" if role in CLICKED or node.has("clickable") else None


def _names(nodes: list[Element], at: int) -> tuple[str, ...]:
    """Return the node's label and, of one that holds others, all of their texts and each of them."""
    node = nodes[at]
    own = node.label or node.name
    inside: list[str] = []
    for other in nodes[at + 1 :]:
        if other.depth <= node.depth:
            break
        inside.append(other.name.strip())
    texts = [text for text in inside if text]
    return tuple(dict.fromkeys(text for text in (own.strip(), " ".join(texts), *texts) if text))


def _holds_another(choice: Choice, nodes: list[Element], found: list[Choice]) -> bool:
    """Whether it is a wrapper without a name, in which there are things to be clicked by themselves."""
    if choice.kind != "click" or choice.role.lower() in CLICKED:
        return False
    at = next(n for n, node in enumerate(nodes) if node.bid == choice.bid)
    if nodes[at].name:
        return False
    bids = {other.bid for other in found}
    held: list[str] = []
    for other in nodes[at + 1 :]:
        if other.depth <= nodes[at].depth:
            break
        held += [other.bid] if other.bid in bids else []
    return len(held) > 1
