"""Tracks the pages' open network requests, and waits until a page is quiet after an action."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus

from playwright.async_api import BrowserContext, Frame, Page, Request, Response
from playwright.async_api import Error as PlaywrightError

from .explain import network_failure

LOADING, FETCHING, STUCK, APPEARING = 10.0, 3.0, 5.0, 1.0
"""Seconds in which a page should have loaded, in which its scripts' requests should be answered, after which a page
that does not respond counts as stuck, and in which a tab appears whose page could not be loaded.
"""

_WAITED_FOR = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})
_PAUSE = 0.05
# Hidden pages draw no frames, but their timers fire.
_TWO_FRAMES = """() => new Promise(done => {
  const tell = () => done(document.readyState);
  setTimeout(tell, 100);
  requestAnimationFrame(() => requestAnimationFrame(tell));
})"""


class Traffic:
    """The unanswered requests of a context's pages, and the result of the last navigation of a page."""

    def __init__(self, context: BrowserContext) -> None:
        self._open: set[Request] = set()
        self._changed = asyncio.Event()
        self._unfinished: set[Page] = set()
        """Pages whose present document was waited for, in vain: no action waits for it again."""
        self._tab_due = 0.0
        """The time of the event loop until which a new tab may still appear."""
        self.failure = ""
        """The reason why a page could not be reached since ``begin``, in words."""
        self.status = ""
        """The HTTP status of the last page in words, if it is an error."""
        context.on("request", self._on_request)
        context.on("response", self._on_response)
        context.on("requestfinished", self._on_finished)
        context.on("requestfailed", self._on_failed)
        context.on("page", self._on_page)

    def begin(self) -> None:
        """Forget earlier requests, so that only those of an action are waited for."""
        self._open.clear()
        self.failure = self.status = ""

    async def quiet(self, page: Callable[[], Page | None]) -> bool:
        """Wait until the page from ``page`` has loaded and no request is open; return False if it takes too long."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while (current := page()) is not None and not current.is_closed():
            self._changed.clear()
            state = await _state(current)
            if page() is not current:
                continue
            if state is None:
                return False
            elapsed = loop.time() - start
            loading = state != "complete" and current not in self._unfinished
            loading = loading or any(request.resource_type == "document" for request in self._open)
            appearing = loop.time() < self._tab_due
            if not loading and not appearing and (not self._open or elapsed > FETCHING):
                return True
            if elapsed > LOADING:
                if state in ("loading", "interactive"):
                    self._unfinished.add(current)
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _PAUSE)
        return True

    def _on_request(self, request: Request) -> None:
        if request.resource_type in _WAITED_FOR:
            self._open.add(request)
            if _of_page(request):
                self.failure = self.status = ""
                if (frame := _frame(request)) is not None:
                    self._unfinished.discard(frame.page)

    def _on_response(self, response: Response) -> None:
        if response.status >= 400 and _of_page(response.request):
            with contextlib.suppress(ValueError):
                phrase = response.status_text or HTTPStatus(response.status).phrase
                self.status = f"The server answered {response.status} {phrase}."

    def _on_finished(self, request: Request) -> None:
        self._open.discard(request)
        self._changed.set()

    def _on_failed(self, request: Request) -> None:
        self._on_finished(request)
        # Downloads and superseded navigations are reported as aborted too.
        if _of_page(request) and request.failure and "ERR_ABORTED" not in request.failure:
            self.failure = network_failure(request.url, request.failure)
            if _frame(request) is None:
                self._tab_due = asyncio.get_running_loop().time() + APPEARING

    def _on_page(self, _: Page) -> None:
        self._tab_due = 0.0
        self._changed.set()


async def responds(page: Page) -> bool:
    """Return whether the page responds: a page whose scripts are busy does not."""
    return await _state(page, "() => document.readyState", 1.0) is not None


async def _state(page: Page, script: str = _TWO_FRAMES, timeout: float = STUCK) -> str | None:
    """Return the document's state after two frames, "" while the page navigates, None if it does not respond."""
    try:
        return await asyncio.wait_for(page.evaluate(script), timeout)
    except TimeoutError:
        return None
    except PlaywrightError:
        await asyncio.sleep(_PAUSE)
        return ""


def _of_page(request: Request) -> bool:
    """Return whether the request is for a page, not for a part of one."""
    if not request.is_navigation_request():
        return False
    frame = _frame(request)
    return frame is None or frame.parent_frame is None


def _frame(request: Request) -> Frame | None:
    """Return the frame of a request, None for the page of a new tab, which does not exist yet."""
    try:
        return request.frame
    except PlaywrightError:
        return None
