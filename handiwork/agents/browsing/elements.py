"""Elements, named as a person would name them, from the text of a page's accessibility tree."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

CLICKED = frozenset(
    {"button", "link", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem", "option", "switch"}
    | {"disclosuretriangle", "summary", "gridcell"}
)
"""Roles of elements to click."""
CHECKED = frozenset({"checkbox", "radio"})
FILLED = frozenset({"textbox", "searchbox", "spinbutton", "date", "inputtime", "datetime", "colorwell", "slider"})
CHOSEN = frozenset({"combobox", "listbox", "menulistpopup"})

_LINE = re.compile(
    r"""(?P<indent>\t*) (?:\[(?P<bid>\w+)\]\ )? (?P<role>[A-Za-z][\w-]*)
        (?:\ (?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))? (?P<rest>.*)""",
    re.VERBOSE,
)
_VALUE = re.compile(r"""value=(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,\s]+)""")
_ATTRIBUTE = re.compile(r"""(?:id|class|src)=(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
"""A value; its words are no properties of the element."""
_HIDDEN = re.compile(r"(?P<part>[\d.]+ screens [a-z ]+), scroll\((?P<across>-?\d+), (?P<down>-?\d+)\)")
_LABEL = 40
"""Maximum characters of a text that may label the element after it."""
_LABELS = frozenset({"StaticText", "LabelText", "heading", "rowheader", "columnheader", "cell"})


@dataclass(frozen=True, slots=True)
class Element:
    """A node of the tree; ``bid`` is "" if no action applies to it, ``label`` is its name or the text before it.

    ``attributes`` are its id, its class and its picture's file, if it has no name.
    """

    depth: int
    bid: str
    role: str
    name: str
    rest: str
    label: str = ""
    value: str = ""
    options: tuple[str, ...] = ()
    attributes: str = ""

    def has(self, word: str) -> bool:
        """Whether the node has this property, like "clickable" or "disabled"."""
        return re.search(rf"(?<![\w='-])(?<!partly ){word}(?!=['\"]?(?:false|False))\b", self.rest) is not None

    @property
    def more_options(self) -> str:
        """How many options the tree leaves out, like "12 more options"; "" if it has all."""
        found = re.search(r"\d+ more options", self.rest)
        return found[0] if found else ""

    @property
    def hidden(self) -> str:
        """How much of a pane is outside of what it shows, like "2.3 screens below"."""
        return "; ".join(match["part"] for match in _HIDDEN.finditer(self.rest))

    @property
    def step(self) -> tuple[int, int]:
        """The pixels that a scroll of the pane leads across and down, 0 where nothing is hidden."""
        sides = [(abs(int(match["across"])), abs(int(match["down"]))) for match in _HIDDEN.finditer(self.rest)]
        return max((across for across, _ in sides), default=0), max((down for _, down in sides), default=0)

    @property
    def checked(self) -> bool:
        """Whether the node is a ticked box or a chosen radio button."""
        return self.has("checked")


def elements(tree: str) -> list[Element]:
    """Return the nodes in their order; the text before a box without a name is its label."""
    found: list[Element] = []
    before = ""
    for text in tree.split("\n"):
        match = _LINE.fullmatch(text)
        if match is None or not (match["bid"] or match["name"]):
            continue
        node = _element(match, before)
        if node.role == "option" and (at := _list_of(found, node)) is not None:
            box = found[at]
            chosen = node.name if node.has("selected") and node.name.endswith(box.value) else box.value
            found[at] = replace(box, options=(*box.options, node.name), value=chosen)
            continue
        found.append(node)
        if node.role in _LABELS and node.name.strip():
            before = node.name if len(node.name) <= _LABEL else ""
        elif node.bid and node.role.lower() in FILLED | CHOSEN:
            before = ""
    return found


def _element(match: re.Match[str], before: str) -> Element:
    name = _said(match["name"]) if match["name"] else ""
    value = _VALUE.search(match["rest"])
    return Element(
        depth=len(match["indent"]),
        bid=match["bid"] or "",
        role=match["role"],
        name=name,
        rest=_QUOTED.sub("''", match["rest"]),
        label=" ".join((name or (before if match["role"].lower() in FILLED | CHOSEN | CHECKED else "")).split()),
        value=_said(value["value"]) if value else "",
        attributes=" ".join(_said(found["value"]) for found in _ATTRIBUTE.finditer(match["rest"])),
    )


def _said(quoted: str) -> str:
    try:
        return str(ast.literal_eval(quoted))
    except (ValueError, SyntaxError):
        return quoted.strip("'\"")


def _list_of(found: list[Element], option: Element) -> int | None:
    """Return the index of the option's select box, None without one."""
    for at in range(len(found) - 1, -1, -1):
        if found[at].depth < option.depth:
            return at if found[at].role in CHOSEN and found[at].bid else None
    return None
