"""Pictures of the window: plain, and with the bids of interactive elements drawn in."""

from __future__ import annotations

from collections.abc import Sequence

from ..cdp.devtools import CDPSession
from .frames import main_frame, script
from .visible import Box

_MARKED = script("marked")


async def screenshot(session: CDPSession) -> str:
    """Return a screenshot of the window, a PNG in base64. Raises DevtoolsError."""
    # Larger files, written twice as fast.
    return (await session.call("Page.captureScreenshot", format="png", optimizeForSpeed=True))["data"]


async def marked(session: CDPSession, picture: str, boxes: Sequence[Box]) -> str:
    """Return a picture with these boxes drawn in; both are PNG in base64. Raises DevtoolsError."""
    frame = main_frame(session)
    drawn = await frame.run(_MARKED, picture, [[box.bid, box.x, box.y, box.width, box.height] for box in boxes])
    await frame.release()
    return drawn[0]
