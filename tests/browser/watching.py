"""A sandbox whose browser looks at the test site, and what is asked of observations again and again."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from handiwork.events.action import BrowseInteractiveAction, CmdRunAction
from handiwork.events.base import Part
from handiwork.events.observation import BrowserOutputObservation
from handiwork.sandbox.base import Sandbox
from tests.sandbox.helpers import PYTHON, Blobs, new_box

SITE = Path(__file__).parent / "site"
HERE = "http://127.0.0.1:8000"


@dataclass
class Watched:
    """A browser, its pages and pictures."""

    sandbox: Sandbox
    blobs: Blobs

    async def do(self, calls: str, **options: Any) -> BrowserOutputObservation:
        """Carry out calls, which must succeed, and return what the browser shows then."""
        seen = await self.sandbox.execute(BrowseInteractiveAction(browser_actions=calls, **options))
        assert isinstance(seen, BrowserOutputObservation), seen
        assert not seen.last_action_error, seen
        return seen

    async def open(self, page: str, **options: Any) -> BrowserOutputObservation:
        """Open a page of the site, or one with this HTML."""
        url = f"data:text/html,{quote(page)}" if page.startswith("<") else f"{HERE}/{page}"
        return await self.do(f"goto({url!r})", **options)

    def whole(self, seen: BrowserOutputObservation) -> str:
        """All of the page's text, of which a long one's observation has only head and tail."""
        return self.blobs.kept[seen.blob].decode() if seen.blob else seen.content

    def picture(self, part: Part | None) -> str:
        """A picture in base64."""
        assert part is not None
        assert part.blob is not None
        return base64.b64encode(self.blobs.kept[part.blob]).decode()

    async def script(self, expression: str, **arguments: Any) -> Any:
        """Evaluate JavaScript in the page."""
        return await self.sandbox.browser("evaluate", expression=expression, **arguments)


@asynccontextmanager
async def watched(folder: Path) -> AsyncGenerator[Watched]:
    """A sandbox in which the site is served."""
    async with new_box(folder) as box:
        shutil.copytree(SITE, box.project / "site")
        sandbox = box.make()
        await sandbox.start()
        await sandbox.execute(CmdRunAction(command=f"{PYTHON} site/serve.py 8000 8001 > served 2>&1 & sleep 0"))
        await sandbox.execute(CmdRunAction(command="until grep -q serving served; do sleep 0.1; done", timeout=60))
        yield Watched(sandbox, box.blobs)


def bid_of(content: str, line: str) -> str:
    """Return the bid of the only line that goes on like this after it."""
    found = re.findall(rf"\[(\w+)\] {re.escape(line)}", content)
    assert len(found) == 1, f"{len(found)} times {line!r} in\n{content}"
    return found[0]


def bids(content: str) -> list[str]:
    """Return all bids of a page's text."""
    return re.findall(r"^\t*\[(\w+)\] ", content, re.MULTILINE)
