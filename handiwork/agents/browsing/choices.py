"""The elements of a page that accept actions, each with a line that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from handiwork.agents.browsing.elements import CHECKED, CHOSEN, CLICKED, FILLED, Element, elements

Kind = Literal["click", "check", "uncheck", "fill", "select", "scroll"]

NAME = 60
"""Maximum characters of the name by which a model refers to an element."""
FORMATS = {"Date": "YYYY-MM-DD", "InputTime": "HH:MM"}
"""The texts that fields of a role take, however the page shows them."""
VALUE = 1_000
"""Maximum characters of a field's content in its line."""


@dataclass(frozen=True, slots=True)
class ElementChoice:
    """An element and the ``kind`` of action that it accepts.

    ``name`` is its visible name, or that in the page's code, ``value`` the content of a text box, ``options`` those
    of a select box, ``more_options`` how many it has besides, ``state`` a word like "selected" or "collapsed"
    or how much of a pane is hidden, ``step`` the pixels that a scroll of the pane leads across and down.
    """

    kind: Kind
    bid: str
    role: str
    name: str = ""
    value: str = ""
    options: tuple[str, ...] = ()
    state: str = ""
    more_options: str = ""
    step: tuple[int, int] = (0, 0)

    @property
    def label(self) -> str:
        """The beginning of the element's line, by which a model refers to it."""
        return f"[{self.bid}] {self.role}" + (f" {self.name[:NAME]!r}" if self.name else "")

    @property
    def shown(self) -> str:
        """The element's line in a prompt."""
        whole = f", in full {self.name!r}" if len(self.name) > NAME else ""
        content = ""
        if self.value and self.kind in ("fill", "select"):
            more = f" ({len(self.value) - VALUE} more characters)" if len(self.value) > VALUE else ""
            content = f" with {self.value[:VALUE]!r}{more}"
        checked = "" if self.state else {"check": ", not checked", "uncheck": ", checked"}.get(self.kind, "")
        options = f", options: {', '.join(filter(None, (*self.options, self.more_options)))}" if self.options else ""
        form = f", format {FORMATS[self.role]}" if self.role in FORMATS else ""
        state = f", {self.state}" if self.state else ""
        return f"{self.label}{whole}{content}{checked}{state}{options}{form}"


_STATES = ("checked", "unchecked", "partly checked", "selected", "pressed", "expanded", "collapsed", "invalid")

Page = list[str | ElementChoice]
"""The texts and elements of a page, in the page's order."""


def read(tree: str) -> Page:
    """Return the page of an accessibility tree."""
    nodes = elements(tree)
    kinds: dict[int, Kind] = {
        at: kind
        for at, node in enumerate(nodes)
        if node.bid and not node.has("disabled") and (kind := _kind(node)) is not None
    }
    for at in [at for at in kinds if nodes[at].role == "tab"]:
        for inner in range(at + 1, _end(nodes, at)):  # a link in a tab is the tab itself
            if nodes[inner].role == "link" and nodes[inner].name == nodes[at].name:
                kinds.pop(inner, None)
    page: Page = []
    said_until = -1
    for at, node in enumerate(nodes):
        if at in kinds and not _only_wraps(nodes, at, kinds):
            pane = kinds[at] == "scroll"
            words = ("partly checked",) if node.role in CHECKED else _STATES
            state = ", ".join(filter(None, [*(word for word in words if node.has(word)), node.hidden]))
            role = "textbox" if node.has("editable") else node.role
            name = " ".join(node.name.split()) if pane else _name(nodes, at) or node.attributes
            more, step = node.more_options, node.step
            page.append(ElementChoice(kinds[at], node.bid, role, name, node.value, node.options, state, more, step))
            # The texts in a pane, or in an editor without a value, stay on the page.
            if not pane and (node.role != "textbox" or node.value):
                said_until = max(said_until, _end(nodes, at))
        elif at >= said_until and node.role != "RootWebArea" and node.name.strip():
            text = " ".join(node.name.split())
            page += [text] if not (page and isinstance(page[-1], ElementChoice) and page[-1].name == text) else []
    return page


def offered(page: Page) -> list[ElementChoice]:
    """Return the elements of the page."""
    return [part for part in page if isinstance(part, ElementChoice)]


def page_lines(tree: str) -> str:
    """Return the page as lines: its texts, its elements after a dash, and the platform's notes about the page."""
    parts = [part if isinstance(part, str) else f"- {part.shown}" for part in read(tree)]
    return "\n".join([*parts, *(line for line in tree.split("\n") if _is_note(line))])


def _is_note(line: str) -> bool:
    return line.startswith("... ") or (line.startswith("[") and not elements(line))


def _kind(node: Element) -> Kind | None:
    role = node.role.lower()
    if role in FILLED or node.has("editable"):
        return "click" if node.has("readonly") else "fill"
    if role in CHOSEN:
        return "select" if node.options else "fill" if role == "combobox" else None
    if role in CHECKED:
        return "click" if node.checked and role == "radio" else "uncheck" if node.checked else "check"
    if role not in CLICKED and node.hidden:
        return "scroll"
    return "click" if role in CLICKED or node.has("clickable") else None


def _end(nodes: Sequence[Element], at: int) -> int:
    """Return the index after a node's last descendant."""
    return next((n for n in range(at + 1, len(nodes)) if nodes[n].depth <= nodes[at].depth), len(nodes))


def _name(nodes: Sequence[Element], at: int) -> str:
    """Return the node's label, or else all texts in it joined."""
    texts = [text for node in nodes[at + 1 : _end(nodes, at)] if (text := node.name.strip())]
    return " ".join((nodes[at].label or " ".join(texts)).split())


def _only_wraps(nodes: Sequence[Element], at: int, kinds: Mapping[int, Kind]) -> bool:
    """Return whether the node only wraps the elements to act on."""
    if kinds[at] != "click":
        return False
    name, inner = _name(nodes, at), [n for n in range(at + 1, _end(nodes, at)) if kinds.get(n, "scroll") != "scroll"]
    if nodes[at].name or nodes[at].role.lower() in CLICKED:
        return any(_name(nodes, n) == name for n in inner)
    return any(_name(nodes, n) or kinds[n] != "click" for n in inner) or (not name and len(inner) > 1)
