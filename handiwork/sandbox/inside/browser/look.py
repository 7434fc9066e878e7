"""What an agent sees of a page: its text, the element with the focus, pictures of the window."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from .bids import mark
from .devtools import Devtools, DevtoolsError, Session

_TRIES = 4


@dataclass(frozen=True)
class Look:
    """One look at a page. ``focused`` is a bid or empty; the pictures are PNG, ``marked`` the one with bids drawn in."""

    text: str
    focused: str
    url: str
    title: str
    screenshot: bytes
    marked: bytes | None = None


async def look(page: Page, devtools: Devtools, *, view: str, marks: bool) -> Look:
    """Look at the page; ``view`` is visible, full or text. A page that moves on meanwhile is looked at again."""
    for wait in range(_TRIES):
        try:
            return await _look(page, devtools, view, marks)
        except (PlaywrightError, DevtoolsError):
            if page.is_closed():
                break
            await asyncio.sleep(0.1 * 2**wait)
    return Look("", "", page.url, "", b"")


async def _look(page: Page, devtools: Devtools, view: str, marks: bool) -> Look:
    await mark(page)
    session = await devtools.session(page)
    tree, snapshot, picture, title = await asyncio.gather(
        session.call("Accessibility.getFullAXTree"),
        session.call("DOMSnapshot.captureSnapshot", computedStyles=[]),
        screenshot(session),
        page.title(),
    )
    text = "\n".join(_lines(tree["nodes"], _bids(snapshot)))
    return Look(text, "", page.url, title, picture, picture if marks else None)


async def screenshot(session: Session) -> bytes:
    """Return a PNG picture of what the window shows."""
    answer = await session.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)
    return base64.b64decode(answer["data"])


def _bids(snapshot: dict[str, Any]) -> dict[int, str]:
    strings = snapshot["strings"]
    found: dict[int, str] = {}
    for document in snapshot["documents"]:
        nodes = document["nodes"]
        for identity, attributes in zip(nodes["backendNodeId"], nodes["attributes"], strict=True):
            for name, value in zip(attributes[::2], attributes[1::2], strict=True):
                if strings[name] == "bid":
                    found[identity] = strings[value]
    return found


def _lines(nodes: list[dict[str, Any]], bids: dict[int, str]) -> list[str]:
    by_id = {node["nodeId"]: node for node in nodes}
    lines: list[str] = []

    def walk(node: dict[str, Any], depth: int) -> None:
        role, name = node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")
        if role == "InlineTextBox":
            return
        shown = not node.get("ignored") and not (role in ("generic", "none") and not name)
        if shown:
            bid = bids.get(node.get("backendDOMNodeId", -1))
            lines.append("\t" * depth + (f"[{bid}] " if bid else "") + f"{role} {name!r}")
        for child in node.get("childIds", []):
            if child in by_id:
                walk(by_id[child], depth + shown)

    if nodes:
        walk(nodes[0], 0)
    return lines
