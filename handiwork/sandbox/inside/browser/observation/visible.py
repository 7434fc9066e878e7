"""The visible part of a page, frames included, without querying the browser about the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cdp.devtools import CDPSession, DevtoolsError
from .frames import Frame, main_frame, script
from .tree import PageNode, from_accessibility

_VISIBLE = script("visible")
_SEEN_AROUND = 0.05
"""Hidden screens that are not worth a line."""
_ATTRIBUTE = 60
"""Maximum characters of an id, a class or the name of a picture's file."""

Item = dict[str, Any]


@dataclass(frozen=True)
class Box:
    """The position of an interactive element in the window, in CSS pixels."""

    bid: str
    x: float
    y: float
    width: float
    height: float


@dataclass
class Visible:
    """The visible part of one document. ``focused`` is a bid or empty; boxes are in the order of the page.

    ``outside`` has for each direction with hidden screens their number, its name, and the scroll that leads there.
    """

    root: PageNode
    focused: str
    boxes: list[Box] = field(default_factory=list[Box])
    outside: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])

    def around(self) -> str:
        """Return a line that says how much of the page is outside the window; "" if nothing is."""
        parts = [f"{screens:.1f} screens {where}: {scroll} shows more" for screens, where, scroll in self.outside]
        return f"... {'; '.join(parts)}" if parts else ""


async def visible(session: CDPSession) -> Visible:
    """Return the visible part of the page. Raises DevtoolsError."""
    return await _read(main_frame(session), (), (0, 0), None)


async def _read(
    frame: Frame, window: tuple[float, ...], offset: tuple[float, float], listening: set[int] | None
) -> Visible:
    answer, *elements = await frame.run(_VISIBLE, *window)
    result = json.loads(answer)
    items: list[Item] = result["items"]
    element_items = [item for item in items if "element" in item]
    if listening is None:
        listening = await _click_listeners(frame.session)
    descriptions = await asyncio.gather(
        *(_accessibility_node(frame, elements[item["element"]]) for item in element_items), return_exceptions=True
    )
    _add_descriptions(element_items, descriptions)
    owners = [item for item in items if "frame" in item]
    inner = await asyncio.gather(
        *(_inner(frame, elements[owner["element"]], owner, offset, listening) for owner in owners)
    )
    await frame.release()
    inside = {part.root.bid: part for part in inner if part}
    page = Visible(PageNode("RootWebArea", result["title"]), result["focused"] or "")
    _build(page, items, inside, offset, listening)
    if page.focused in inside:
        page.focused = inside[page.focused].focused or page.focused
    page.outside = _outside(result)
    return page


def _outside(sides: Item) -> list[tuple[float, str, str]]:
    height, width = max(sides["height"], 1), max(sides["width"], 1)
    every = [
        (sides["above"] / height, "above", f"scroll(0, -{height})"),
        (sides["below"] / height, "below", f"scroll(0, {height})"),
        (sides["left"] / width, "on the left", f"scroll(-{width}, 0)"),
        (sides["right"] / width, "on the right", f"scroll({width}, 0)"),
    ]
    return [side for side in every if side[0] > _SEEN_AROUND]


def _note_hidden(node: PageNode, outside: Sequence[tuple[float, str, str]]) -> None:
    """Note how much of a pane or frame is hidden, and the calls that scroll it."""
    parts = [f"{screens:.1f} screens {where}, {scroll}" for screens, where, scroll in outside]
    if parts:
        node.note(f"scrollable after hover({node.bid!r}): {'; '.join(parts)}")


async def _accessibility_node(frame: Frame, element: str) -> dict[str, Any]:
    answer = await frame.session.call("Accessibility.getPartialAXTree", objectId=element, fetchRelatives=False)
    return answer["nodes"][0]


def _add_descriptions(items: list[Item], descriptions: Sequence[dict[str, Any] | BaseException]) -> None:
    failed = [error for error in descriptions if isinstance(error, BaseException)]
    # An element that vanished is left without a role; if all did, so has the page.
    if failed and (len(failed) == len(items) or not all(isinstance(error, DevtoolsError) for error in failed)):
        raise failed[0]
    for item, description in zip(items, descriptions, strict=True):
        if not isinstance(description, BaseException):
            item["described"] = description


async def _inner(
    frame: Frame, element: str, owner: Item, offset: tuple[float, float], listening: set[int]
) -> Visible | None:
    position = owner["frame"]
    x, y = position["x"] + offset[0], position["y"] + offset[1]
    try:
        child = await frame.child(element)
        if child is None:
            return None
        part = await _read(
            child, tuple(position["window"]), (x, y), listening if child.session is frame.session else None
        )
    except DevtoolsError:
        # The frame is gone or loading: the page around it is still useful.
        return None
    part.root.bid = owner["bid"]
    return part


def _build(
    page: Visible, items: list[Item], inside: dict[str, Visible], offset: tuple[float, float], listening: set[int]
) -> None:
    nodes: list[PageNode] = []
    for item in items:
        node = PageNode("StaticText", item["text"]) if "text" in item else _node(item, listening)
        nodes.append(node)
        parent: int = item["parent"]
        (nodes[parent] if parent >= 0 else page.root).children.append(node)
        if item.get("acts"):
            x, y, width, height = item["box"]
            page.boxes.append(Box(item["bid"], x + offset[0], y + offset[1], width, height))
        if part := inside.get(item.get("bid", "")):
            node.children.append(part.root)
            page.boxes += part.boxes
            part.root.bid = ""
            _note_hidden(node, part.outside)


def _node(item: Item, listening: set[int]) -> PageNode:
    description = item.get("described")
    node = (
        from_accessibility(description, item["bid"] or "")
        if description
        else PageNode("textbox" if item.get("editor") else "generic", bid=item["bid"] or "")
    )
    if not item["visible"]:
        node.notes = [note for note in node.notes if note == "focused"]
        return node
    listens = description is not None and description.get("backendDOMNodeId") in listening
    item["acts"] = item["native"] or item["pointer"] or listens
    if item["pointer"] or listens:
        node.clickable()
        if "tag" in item:
            node.note(item["tag"])
    if item["acts"] and not node.name:
        node.notes += [f"{name}={' '.join(value.split())[:_ATTRIBUTE]!r}" for name, value in item.get("attributes", ())]
    if "checked" in item:
        node.note("checked" if item["checked"] else "unchecked")
    if "pane" in item:
        _note_hidden(node, _outside(item["pane"]))
    if "options" in item:
        node.children = [
            PageNode("option", label, bid or "", notes=["selected"] * selected + ["disabled"] * disabled)
            for bid, label, selected, disabled in item["options"]["list"]
        ]
        if item["options"]["more"]:
            node.note(f"{item['options']['more']} more options")
    return node


async def _click_listeners(session: CDPSession) -> set[int]:
    """Return the backend ids of all elements of the target that listen to clicks."""
    document = await session.call("Runtime.evaluate", expression="document", objectGroup="handiwork")
    answer = await session.call(
        "DOMDebugger.getEventListeners", objectId=document["result"]["objectId"], depth=-1, pierce=True
    )
    await session.call("Runtime.releaseObjectGroup", objectGroup="handiwork")  # it holds every listener
    kinds = {"click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick"}
    return {
        listener["backendNodeId"]
        for listener in answer["listeners"]
        if listener["type"] in kinds and "backendNodeId" in listener
    }
