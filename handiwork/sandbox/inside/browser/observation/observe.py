"""An agent's observation of a page: its text, the element with the focus, pictures of the window."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from ..cdp.devtools import CDPSession, Devtools, DevtoolsError
from . import tree
from .axtree import full
from .page_text import words
from .screenshots import marked, screenshot
from .visible import Visible, visible

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
    picture, seen = await asyncio.gather(screenshot(session), visible(session))
    text = await _text(session, view, seen)
    with_marks = base64.b64decode(await marked(session, picture, seen.boxes)) if marks else None
    return Look(text, seen.focused, page.url, seen.root.name, base64.b64decode(picture), with_marks)


async def _text(session: CDPSession, view: str, seen: Visible) -> str:
    match view:
        case "text":
            return await words(session)
        case "full":
            return tree.text(await full(session))
        case _:
            return "\n".join(filter(None, [tree.text(seen.root), seen.around()]))


async def _picture_alone(page: Page, devtools: Devtools) -> bytes:
    try:
        return base64.b64decode(await screenshot(await devtools.session(page)))
    except (PlaywrightError, DevtoolsError):
        return b""
