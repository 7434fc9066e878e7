"""An agent's observation of a page: its text, the element with the focus, pictures of the window."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from ..cdp.devtools import CDPSession, Devtools, DevtoolsError
from . import tree
from .axtree import full
from .frames import Frame, main_frame, script
from .visible import Box, Visible, visible

_READING, _MARKED = script("reading"), script("marked")
_WAITS = (0.1, 0.3, 0.9)
"""Seconds before the second attempt and the following ones."""
_UNREADABLE = "... the page could not be read, as it keeps moving on: noop(2000) waits for it"


@dataclass(frozen=True)
class Look:
    """One observation of a page. ``focused`` is a bid or empty; pictures are PNG, ``marked`` has the bids drawn in."""

    text: str
    focused: str
    url: str
    title: str
    screenshot: bytes
    marked: bytes | None = None


async def look(page: Page, devtools: Devtools, *, view: str, marks: bool) -> Look:
    """Observe the page and give its elements bids; ``view`` is visible, full or text.

    A page that navigates meanwhile is tried again, a few times; then the text says that it could not be read. While its
    scripts are busy, or a dialog is open, this does not return: the caller sets the limit.
    """
    for wait in (*_WAITS, None):
        try:
            return await _look(page, await devtools.session(page), view, marks)
        except (PlaywrightError, DevtoolsError):
            if page.is_closed() or wait is None:
                break
            await asyncio.sleep(wait)
    return Look(_UNREADABLE, "", page.url, "", await _picture_alone(page, devtools))


async def _look(page: Page, session: CDPSession, view: str, marks: bool) -> Look:
    picture, seen = await asyncio.gather(_screenshot(session), visible(session))
    text = await _text(session, view, seen)
    with_marks = base64.b64decode(await _marked(session, picture, seen.boxes)) if marks else None
    return Look(text, seen.focused, page.url, seen.root.name, base64.b64decode(picture), with_marks)


async def _text(session: CDPSession, view: str, seen: Visible) -> str:
    match view:
        case "text":
            return "\n".join(await _lines(main_frame(session)))
        case "full":
            return tree.text(await full(session))
        case _:
            return "\n".join(filter(None, [tree.text(seen.root), seen.around()]))


async def _lines(frame: Frame) -> list[str]:
    """Return the lines of text: headings, paragraphs, lists, tables as rows, links with their bids; frames included."""
    answer, *iframes = await frame.run(_READING)
    inside = dict(await asyncio.gather(*(_inner(frame, iframe) for iframe in iframes)))
    await frame.release()
    lines: list[str] = []
    for line in json.loads(answer):
        if isinstance(line, str):
            lines.append(line)
        else:
            lines += inside.get(line["frame"], [])
    return lines


async def _inner(frame: Frame, iframe: str) -> tuple[str, list[str]]:
    try:
        child = await frame.child(iframe)
        return (child.prefix, await _lines(child)) if child else ("", [])
    except DevtoolsError:
        # The frame is gone or loading: the page around it is still useful.
        return "", []


async def _screenshot(session: CDPSession) -> str:
    """Return a screenshot of the window, a PNG in base64. Raises DevtoolsError."""
    # Larger files, written twice as fast.
    return (await session.call("Page.captureScreenshot", format="png", optimizeForSpeed=True))["data"]


async def _marked(session: CDPSession, picture: str, boxes: Sequence[Box]) -> str:
    """Return a picture with these boxes drawn in; both are PNG in base64. Raises DevtoolsError."""
    frame = main_frame(session)
    drawn = await frame.run(_MARKED, picture, [[box.bid, box.x, box.y, box.width, box.height] for box in boxes])
    await frame.release()
    return drawn[0]


async def _picture_alone(page: Page, devtools: Devtools) -> bytes:
    try:
        return base64.b64decode(await _screenshot(await devtools.session(page)))
    except (PlaywrightError, DevtoolsError):
        return b""
