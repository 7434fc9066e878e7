"""Bids: a short name for every element of a page, with which an agent refers to it; marks.js assigns them."""

from __future__ import annotations

import re

from playwright.async_api import ElementHandle, Page

_BID = re.compile(r"(?P<frames>(?:[a-z][A-Z]*)*)(?P<number>[0-9]*)")
_FRAME = re.compile(r"[a-z][A-Z]*")


class NoElementError(Exception):
    """There is no element with this bid; the message says so to the agent."""


async def locate(page: Page, bid: str) -> ElementHandle:
    """Return the element with this bid, in any frame or open shadow root. Raises NoElementError."""
    parts = _BID.fullmatch(bid)
    if not bid or parts is None:
        raise NoElementError(
            f"{bid!r} is not a bid: a bid is what stands in brackets before an element, such as '12' or 'a5'"
        )
    frame, prefix = page.main_frame, ""
    for letters in _FRAME.findall(parts["frames"]):
        prefix += letters
        if prefix == bid:
            break
        owner = await frame.query_selector(f'[bid="{prefix}"]')
        inside = await owner.content_frame() if owner else None
        if inside is None:
            raise _missing(bid, f", nor a frame [{prefix}] that it would be in")
        frame = inside
    element = await frame.query_selector(f'[bid="{bid}"]')
    if element is None:
        raise _missing(bid)
    return element


def _missing(bid: str, more: str = "") -> NoElementError:
    return NoElementError(
        f"there is no element [{bid}] on the page now{more}: the page has changed since, look at it again "
        "and take a bid from what it shows"
    )
