"""The choices that a page offers, each with a line of its own that a model copies to choose it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from handiwork.agents.browsing.elements import CHECKED, CHOSEN, CLICKED, FILLED, Element, elements

Kind = Literal["click", "hover", "check", "uncheck", "fill", "select", "paste", "press", "scroll"]

NAME = 60
"""Maximum characters of an element's name in a choice."""
MOMENT = 400
"""Milliseconds that a menu, or the suggestions of a box, may take to appear."""

_MORE = re.compile(r"(above|below): scroll\(0, (-?\d+)\)")


@dataclass(frozen=True, slots=True)
class ElementChoice:
    """An action on an element; ``names`` are the texts by which a person may call the element.

    ``value`` is the content of a box, ``options`` are those of a select box, ``pixels`` is the distance to scroll. A
    ``closed`` element shows more when it is clicked.
    """

    kind: Kind
    bid: str = ""
    role: str = ""
    names: tuple[str, ...] = ()
    value: str = ""
    options: tuple[str, ...] = ()
    pixels: int = 0
    closed: bool = False

    @property
    def name(self) -> str:
        """The element's first name; "" if it has none."""
        return self.names[0] if self.names else ""

    @property
    def shown(self) -> str:
        """The line that stands for the choice."""
        if self.kind == "scroll":
            return f"scroll {'down' if self.pixels > 0 else 'up'}"
        held = f" with {self.value[:NAME]!r}" if self.value and self.kind in ("fill", "select") else ""
        named = f" {self.name[:NAME]!r}" if self.name else ""
        return f"{self.kind} [{self.bid}] {self.role}{named}{held}"

    def calls(self, text: str = "") -> str:
        """Return the choice's browser calls; ``text`` is the text to fill in or the option to select.

        For "paste", ``text`` is the bid of the box to copy from; for "press", keys separated by blanks.
        """
        match self.kind:
            case "fill":
                return f"fill({self.bid!r}, {text!r})\nnoop({MOMENT})"
            case "select":
                return f"select_option({self.bid!r}, {text!r})"
            case "scroll":
                return f"scroll(0, {self.pixels})"
            case "paste":
                return "\n".join(
                    [
                        *(f"press({text!r}, 'ControlOrMeta+{letter}')" for letter in "ac"),
                        f"press({self.bid!r}, 'ControlOrMeta+v')",
                    ]
                )
            case "press":
                return "\n".join(f"press({self.bid!r}, {pressed!r})" for pressed in text.split())
            case "hover":
                return f"hover({self.bid!r})\nnoop({MOMENT})"
            case _:
                return f"{self.kind}({self.bid!r})"


Page = list[str | ElementChoice]
"""The texts and choices of a page, in the page's order."""


def read(tree: str) -> Page:
    """Return the page; the choices that scroll come last."""
    nodes = elements(tree)
    named: dict[int, tuple[Kind, tuple[str, ...]]] = {}
    for at, node in enumerate(nodes):
        if node.bid and not node.has("disabled") and (kind := _kind(node)) is not None:
            named[at] = (kind, _names(nodes, at))
    for at in [at for at in named if nodes[at].role == "tab"]:
        for inner in range(at + 1, _end(nodes, at)):  # a link in a tab is the tab itself
            if nodes[inner].role == "link" and nodes[inner].name == nodes[at].name:
                named.pop(inner, None)
    page: Page = []
    said_until = -1
    for at, node in enumerate(nodes):
        if at in named and not _only_wraps(nodes, at, named):
            page += _choices(node, *named[at])
            said_until = max(said_until, _end(nodes, at))
        elif at >= said_until and node.role != "RootWebArea" and node.name.strip():
            text = " ".join(node.name.split())
            page += [text] if not (page and isinstance(page[-1], ElementChoice) and page[-1].name == text) else []
    page += [ElementChoice("scroll", pixels=int(pixels)) for _, pixels in _MORE.findall(tree.rpartition("\n")[2])]
    return page


def offered(page: Page) -> list[ElementChoice]:
    """Return the choices of the page."""
    return [part for part in page if isinstance(part, ElementChoice)]


def _choices(node: Element, kind: Kind, names: tuple[str, ...]) -> list[ElementChoice]:
    found = [ElementChoice(kind, node.bid, node.role, names, node.value, node.options, closed=node.has("collapsed"))]
    if node.role == "menuitem":
        found.append(ElementChoice("hover", node.bid, node.role, names))
    return found


def _kind(node: Element) -> Kind | None:
    role = node.role.lower()
    if role in FILLED:
        return "click" if node.has("readonly") else "fill"
    if role in CHOSEN:
        return "select" if node.options else "fill" if role == "combobox" else None
    if role in CHECKED:
        return "uncheck" if node.checked and role == "checkbox" else None if node.checked else "check"
    return "click" if role in CLICKED or node.has("clickable") else None


def _end(nodes: Sequence[Element], at: int) -> int:
    """Return the index after a node's last descendant."""
    return next((n for n in range(at + 1, len(nodes)) if nodes[n].depth <= nodes[at].depth), len(nodes))


def _names(nodes: Sequence[Element], at: int) -> tuple[str, ...]:
    """Return the node's label, or else all texts in it joined, and then each text in it."""
    texts = [text for node in nodes[at + 1 : _end(nodes, at)] if (text := node.name.strip())]
    names = [" ".join((nodes[at].label or " ".join(texts)).split()), *texts]
    return tuple(dict.fromkeys(name for name in names if name))


def _only_wraps(nodes: Sequence[Element], at: int, named: dict[int, tuple[Kind, tuple[str, ...]]]) -> bool:
    """Whether the node only wraps the elements to act on."""
    kind, names = named[at]
    if kind != "click":
        return False
    inner = [n for n in range(at + 1, _end(nodes, at)) if n in named]
    if nodes[at].name or nodes[at].role.lower() in CLICKED:
        return any(named[n][1][:1] == names[:1] for n in inner)
    return any(named[n][1] or named[n][0] != "click" for n in inner) or (not names and len(inner) > 1)
