"""The text of a whole page for reading: headings, paragraphs, lists, tables as rows, links with their bids."""

from __future__ import annotations

import asyncio
import json

from ..cdp.devtools import CDPSession, DevtoolsError
from .frames import Frame, main_frame, script

_READING = script("reading")


async def words(session: CDPSession) -> str:
    """Return the page's lines of text, frames included. Raises DevtoolsError."""
    return "\n".join(await _lines(main_frame(session)))


async def _lines(frame: Frame) -> list[str]:
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
