"""A page's tree as text: one node a line, its bid in brackets, children indented by one more tab."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_NAME_LIMIT = 200
_DROPPED = {"InlineTextBox", "ListMarker", "LineBreak"}
_FOLDED = {
    *("", "generic", "none", "paragraph", "strong", "emphasis", "LabelText", "Legend", "MenuListPopup", "rowgroup"),
    *("SvgRoot", "graphics-symbol", "LayoutTable", "LayoutTableRow", "LayoutTableCell"),
}
"""Roles of mere wrappers: without a name they are left out."""
_CONTAINERS = {
    *("RootWebArea", "alert", "alertdialog", "application", "article", "banner", "complementary", "contentinfo"),
    *("dialog", "document", "feed", "figure", "form", "group", "list", "log", "main", "menu", "navigation", "note"),
    *("radiogroup", "region", "search", "status", "table", "tabpanel", "timer", "toolbar"),
}
"""Roles whose name is not made of the texts in them: a text that is a part of it tells something else."""
_PRESSABLE = {
    *("button", "checkbox", "combobox", "Date", "DateTime", "DisclosureTriangle", "InputTime", "link", "menuitem"),
    *("menuitemcheckbox", "menuitemradio", "option", "radio", "searchbox", "slider", "spinbutton", "switch", "tab"),
    *("textbox", "treeitem"),
}
"""Roles that imply clickability: ``clickable`` would only repeat it."""


@dataclass
class PageNode:
    """One line: role, name, value and notes such as ``checked``."""

    role: str
    name: str = ""
    bid: str = ""
    value: str = ""
    notes: list[str] = field(default_factory=list[str])
    children: list[PageNode] = field(default_factory=list["PageNode"])

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def clickable(self) -> None:
        """Note that the node is clickable, if its role does not imply it."""
        if self.role not in _PRESSABLE:
            self.note("clickable")


def text(root: PageNode) -> str:
    """Return the tree's lines, without empty wrappers and without text that repeats the parent's name."""
    lines: list[str] = []
    # Not by recursion: a page's depth has no limit.
    waiting: list[tuple[PageNode, int, PageNode | None]] = [(root, 0, None)]
    while waiting:
        node, depth, parent = waiting.pop()
        if node.role in _DROPPED or (node.role == "StaticText" and _repeats(node, parent)):
            continue
        if node.role not in _FOLDED or node.name or node.notes or node.value:
            lines.append("\t" * depth + _line(node))
            depth, parent = depth + 1, node
        waiting += [(child, depth, parent) for child in reversed(node.children)]
    return "\n".join(lines)


def _repeats(node: PageNode, parent: PageNode | None) -> bool:
    if not node.name or parent is None:
        return not node.name
    shown = parent.name[:_NAME_LIMIT]
    if parent.role in _CONTAINERS:
        return node.name == shown and parent.role != "RootWebArea"
    return node.name in shown or node.name in parent.value


def _line(node: PageNode) -> str:
    name = node.name
    if len(name) > _NAME_LIMIT and node.role != "StaticText":
        name = name[:_NAME_LIMIT] + "..."
    bid = f"[{node.bid}] " if node.bid and node.role != "StaticText" else ""
    value = f" value={node.value!r}" if node.value else ""
    return ", ".join([f"{bid}{node.role or 'generic'} {name!r}{value}", *node.notes])


_TRUE = ("focused", "disabled", "required", "readonly", "multiselectable", "modal", "busy")
_NUMBERS = {"valuemin": "min", "valuemax": "max"}


def from_accessibility(source: dict[str, Any], bid: str) -> PageNode:
    """Return the node for one of the browser's accessibility tree, without children; an ignored one has no role."""
    node = PageNode("" if source.get("ignored") else _word(source, "role"), bid=bid)
    if not node.role:
        return node
    node.name = " ".join(_word(source, "name").split())
    node.value = " ".join(_word(source, "value").split())
    properties = {item["name"]: item["value"].get("value") for item in source.get("properties", ())}
    node.notes += [name for name in _TRUE if properties.get(name) is True]
    # An editor may take text alone, as fields do, whose roles tell it.
    fields = {"richtext": {"textbox"}, "plaintext": _PRESSABLE}.get(properties.get("editable", ""))
    if fields is not None and node.role not in fields and properties.get("focusable"):
        node.note("editable")
    if "checked" in properties:
        node.note({"true": "checked", "mixed": "partly checked"}.get(str(properties["checked"]), "unchecked"))
    if properties.get("pressed") in ("true", "mixed"):
        node.note("pressed")
    if properties.get("selected") is True:
        node.note("selected")
    if "expanded" in properties and not (node.role == "combobox" and not properties["expanded"]):
        node.note("expanded" if properties["expanded"] else "collapsed")
    if properties.get("invalid", "false") != "false":
        node.note("invalid")
    # A box for any number has 0 as both.
    if properties.get("valuemin") != properties.get("valuemax"):
        node.notes += [f"{word}={properties[name]}" for name, word in _NUMBERS.items() if name in properties]
    if node.role in ("heading", "treeitem") and "level" in properties:
        node.note(f"level={properties['level']}")
    if node.role == "link" and not node.name and properties.get("url"):
        node.note(f"url={str(properties['url'])[:_NAME_LIMIT]!r}")
    description = " ".join(_word(source, "description").split())
    if description and description not in node.name:
        node.note(f"description={description[:_NAME_LIMIT]!r}")
    return node


def _word(source: dict[str, Any], name: str) -> str:
    value = source.get(name, {}).get("value")
    return "" if value is None else str(value)
