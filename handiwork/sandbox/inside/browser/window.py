"""The browser's window: tabs, the open dialog, downloads, errors of the pages."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Download, Page, WebError
from playwright.async_api import Error as PlaywrightError

from .traffic import Traffic

ACTION_TIMEOUT, NAVIGATION_TIMEOUT = 3.0, 20.0
"""Seconds in which an element must accept an action, and in which a server must start to answer."""

DOWNLOADS = "downloads"
"""The folder of the workspace for downloads."""

_ERRORS, _ERROR_LENGTH = 10, 300
_DOWNLOADING = 5.0  # seconds to wait for a download
_ANSWERED = 3.0  # seconds in which an action blocked by a dialog should resume


class Window:
    """The tabs of one context; an open ``dialog`` blocks its page."""

    def __init__(self, context: BrowserContext, workspace: Path) -> None:
        self.context = context
        self.workspace = workspace
        self.traffic = Traffic(context)
        self.pages: list[Page] = []
        self.typed = ""
        """The text typed into the dialog."""
        self.said: list[str] = []
        self.infeasible = ""
        self._active: Page | None = None
        self._dialogs: list[Dialog] = []
        self._asked = asyncio.Event()
        self._standing: asyncio.Future[None] | None = None
        self._in_background = False
        self._left: set[asyncio.Task[None]] = set()
        self._saving: set[asyncio.Task[None]] = set()
        self._saved: list[str] = []
        self._errors: list[str] = []
        context.set_default_timeout(ACTION_TIMEOUT * 1000)
        context.set_default_navigation_timeout(NAVIGATION_TIMEOUT * 1000)
        context.on("page", self._opened)
        context.on("dialog", self._dialog_opened)
        context.on("dialogclosed", self._dialog_closed)
        context.on("download", self._download)
        context.on("console", self._console)
        context.on("weberror", self._web_error)

    @property
    def dialog(self) -> Dialog | None:
        """The dialog to answer first."""
        return self._dialogs[0] if self._dialogs else None

    @property
    def active(self) -> int:
        """The index of the current tab, -1 if there is none."""
        return self.pages.index(self._active) if self._active in self.pages else -1

    async def page(self) -> Page:
        """Return the current page, a blank one if all were closed."""
        if self._active is None:
            await self.open_tab()
        assert self._active is not None
        return self._active

    async def open_tab(self) -> None:
        """Open a blank tab and show it."""
        self._show(await self.context.new_page())

    async def replace_tab(self) -> Page:
        """Open a blank tab in place of the current one, and return its page."""
        before = await self.page()
        await self.open_tab()
        self._closed(before)
        self._leave(before.close())
        return await self.page()

    async def open_in_background(self) -> Page:
        """Open a page outside the tabs; the caller closes it."""
        self._in_background = True
        try:
            return await self.context.new_page()
        finally:
            self._in_background = False

    async def show_tab(self, index: int) -> None:
        """Make another tab the current one."""
        self._show(self.pages[index])
        await self.pages[index].bring_to_front()

    async def do(self, action: Coroutine[Any, Any, None]) -> bool:
        """Run an action until the page is quiet or opens a dialog; return False if the page keeps loading.

        Exceptions of the action are raised.
        """
        self.traffic.begin()
        self._standing = asyncio.ensure_future(action)
        if not await self._until_asked(self._standing):
            return True
        self._standing.result()
        return await self._settled()

    async def answer(self, *, accept: bool) -> bool:
        """Answer the dialog, and resume the action that it blocked, as ``do`` does."""
        self.traffic.begin()
        dialog, typed, self.typed = self._dialogs.pop(0), self.typed, ""
        if not self._dialogs:
            self._asked.clear()
        with contextlib.suppress(PlaywrightError):  # the page closed the dialog
            await (dialog.accept(typed or dialog.default_value) if accept else dialog.dismiss())
        if self._standing is not None and not self._standing.done():
            waiting = asyncio.ensure_future(asyncio.wait([self._standing], timeout=_ANSWERED))
            if not await self._until_asked(waiting):
                return True
            if not self._standing.done():
                self._standing.cancel()
        return await self._settled()

    async def during(self, looking: asyncio.Future[Any]) -> bool:
        """Wait for work that ends only while no dialog is open; if one opens, cancel the work and return False."""
        if await self._until_asked(looking):
            return True
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        return False

    def take_downloads(self) -> list[str]:
        """Return the paths of new downloads, and clear them."""
        found, self._saved = self._saved, []
        return found

    def take_errors(self) -> list[str]:
        """Return the pages' new errors, and clear them."""
        found, self._errors = self._errors, []
        return found

    async def close(self) -> None:
        """Close all tabs and the context."""
        for task in self._saving:
            task.cancel()
        with contextlib.suppress(PlaywrightError):
            await self.context.close()

    async def _until_asked(self, work: asyncio.Future[Any]) -> bool:
        """Wait for ``work`` or a dialog; return False for a dialog. Cancelling this call cancels the work."""
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            asked.cancel()
        if work.done():
            return True
        work.add_done_callback(_forgotten)
        return False

    async def _settled(self) -> bool:
        quiet = asyncio.ensure_future(self.traffic.quiet(lambda: self._active))
        if not await self.during(quiet):
            return True
        if self._saving:
            await asyncio.wait(self._saving, timeout=_DOWNLOADING)
        return quiet.result()

    def _show(self, page: Page) -> None:
        self._active = page

    def _opened(self, page: Page) -> None:
        if self._in_background:
            return
        self.pages.append(page)
        self._active = page
        page.on("close", self._closed)
        page.on("crash", self._crashed)

    def _closed(self, page: Page) -> None:
        if page not in self.pages:
            return
        index = self.pages.index(page)
        self.pages.remove(page)
        self._dialogs = [dialog for dialog in self._dialogs if dialog.page is not page]
        if not self._dialogs:
            self._asked.clear()
        if self._active is page:
            self._active = self.pages[max(0, index - 1)] if self.pages else None

    async def _crashed(self, page: Page) -> None:
        self._error("A page crashed; its tab was closed.")
        self._closed(page)
        with contextlib.suppress(PlaywrightError):
            await page.close()

    def _dialog_opened(self, dialog: Dialog) -> None:
        if dialog.page is not None and dialog.page not in self.pages:
            self._leave(dialog.dismiss())
            return
        self._dialogs.append(dialog)
        self._asked.set()

    def _leave(self, work: Coroutine[Any, Any, None]) -> None:
        """Run as a background task."""
        task = asyncio.ensure_future(work)
        self._left.add(task)
        task.add_done_callback(self._left.discard)
        task.add_done_callback(_forgotten)

    def _dialog_closed(self, dialog: Dialog) -> None:
        if dialog in self._dialogs:
            self._dialogs.remove(dialog)
        if not self._dialogs:
            self._asked.clear()

    def _download(self, download: Download) -> None:
        task = asyncio.ensure_future(self._save(download))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def _save(self, download: Download) -> None:
        name = os.path.basename(download.suggested_filename).lstrip(".") or "download"
        folder = self.workspace / DOWNLOADS
        stem, dot, kind = name.partition(".")
        try:
            folder.mkdir(exist_ok=True)
            number = 1
            while True:
                path = folder / (name if number == 1 else f"{stem}-{number}{dot}{kind}")
                number += 1
                with contextlib.suppress(FileExistsError):
                    path.touch(exist_ok=False)
                    break
            await download.save_as(path)
            self._saved.append(f"{DOWNLOADS}/{path.name}")
        except (PlaywrightError, OSError) as error:
            self._error(f"The download of {name} failed: {error}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._error(message.text)

    def _web_error(self, error: WebError) -> None:
        self._error(str(error.error).partition("\n")[0])

    def _error(self, text: str) -> None:
        if len(self._errors) < _ERRORS:
            self._errors.append(text if len(text) <= _ERROR_LENGTH else f"{text[: _ERROR_LENGTH - 3]}...")


def _forgotten(done: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned task, so that asyncio does not log it."""
    if not done.cancelled():
        done.exception()
