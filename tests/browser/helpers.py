"""A browser in a sandbox, and what tests ask of it again and again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from handiwork.events.action import BrowseInteractiveAction, BrowseURLAction
from handiwork.events.base import Action
from handiwork.events.observation import BrowserOutputObservation
from handiwork.sandbox.base import Sandbox
from tests.sandbox.helpers import Blobs

SITE, OTHER = "http://127.0.0.1:8000", "http://127.0.0.1:8001"
"""The test site, and the other origin that its pages have frames of; both inside the sandbox."""


@dataclass
class Browsing:
    """Browses the test site in one sandbox."""

    sandbox: Sandbox
    blobs: Blobs

    async def open(self, page: str, **options: Any) -> BrowserOutputObservation:
        """Open a page of the site, such as "forms.html", or another URL."""
        url = page if ":" in page else f"{SITE}/{page}"
        return await self._seen(BrowseURLAction(url=url, **options))

    async def do(self, calls: str, **options: Any) -> BrowserOutputObservation:
        """Run calls, which must be done to their end."""
        seen = await self.attempt(calls, **options)
        assert not seen.last_action_error, seen.last_action_error
        return seen

    async def attempt(self, calls: str, **options: Any) -> BrowserOutputObservation:
        """Run calls, which may fail."""
        return await self._seen(BrowseInteractiveAction(browser_actions=calls, **options))

    async def js(self, expression: str) -> Any:
        """Evaluate JavaScript in the page that is shown."""
        return await self.sandbox.browser("evaluate", expression=expression)

    async def bid(self, selector: str) -> str:
        """Return the bid, as it is written in a call, of the first element that a CSS selector finds."""
        found = await self.js(f"document.querySelector({json.dumps(selector)}).getAttribute('bid')")
        assert found, f"{selector} has no bid"
        return repr(found)

    async def said(self, selector: str = "#log") -> str:
        """Return the text of an element, to which pages write what happened to them."""
        return (await self.js(f"document.querySelector({json.dumps(selector)}).textContent")).strip()

    async def _seen(self, action: Action) -> BrowserOutputObservation:
        seen = await self.sandbox.execute(action)
        assert isinstance(seen, BrowserOutputObservation), seen
        return seen
