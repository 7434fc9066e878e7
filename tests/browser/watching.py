"""What tests ask of observations again and again."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import quote

from handiwork.events.base import Part
from handiwork.events.observation import BrowserOutputObservation
from tests.browser.helpers import Browsing


class Watching(Browsing):
    """Browses pages that a test writes itself, and looks closely."""

    async def show(self, html: str, **options: Any) -> BrowserOutputObservation:
        """Open a page with this HTML."""
        return await self.open(f"data:text/html,{quote(html)}", **options)

    async def script(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript in the page, a function of the argument perhaps."""
        return await self.sandbox.browser("evaluate", expression=expression, argument=argument)

    def whole(self, seen: BrowserOutputObservation) -> str:
        """All of the page's text, of which a long one's observation has only head and tail."""
        return self.blobs.kept[seen.blob].decode() if seen.blob else seen.content

    def picture(self, part: Part | None) -> str:
        """A picture in base64."""
        assert part is not None
        assert part.blob is not None
        return base64.b64encode(self.blobs.kept[part.blob]).decode()


def bid_of(content: str, line: str) -> str:
    """Return the bid of the only line that goes on like this after it."""
    found = re.findall(rf"\[(\w+)\] {re.escape(line)}", content)
    assert len(found) == 1, f"{len(found)} times {line!r} in\n{content}"
    return found[0]


def bids(content: str) -> list[str]:
    """Return all bids of a page's text."""
    return re.findall(r"^\t*\[(\w+)\] ", content, re.MULTILINE)
