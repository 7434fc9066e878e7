"""The browser's window: tabs, the open dialog, downloads, errors of the pages."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Download, FileChooser, Page, WebError
from playwright.async_api import Error as PlaywrightError

from .traffic import Traffic

ACTION_TIMEOUT, NAVIGATION_TIMEOUT = 3.0, 20.0
"""Seconds in which an element must accept an action, and in which a server must start to answer."""

DOWNLOADS = "downloads"
"""The folder of the workspace for downloads."""

_NO_PAGE = (":", "")  # Playwright's URLs of a tab without any page, not even a blank one; "" since Chromium 156
_ERRORS, _ERROR_LENGTH = 10, 300
_DOWNLOAD_TIMEOUT = 5.0  # seconds to wait for a download
_RESUME_TIMEOUT = 3.0  # seconds in which an action blocked by a dialog should resume


class Window:
    """The tabs of one context; an open ``dialog`` blocks its page."""

    def __init__(self, context: BrowserContext, workspace: Path) -> None:
        self.context = context
        self.workspace = workspace
        self.traffic = Traffic(context)
        self.pages: list[Page] = []
        self.typed = ""
        """The text typed into the dialog."""
        self.messages: list[str] = []
        self.infeasible = ""
        self.asks_for_file = False
        """Whether the last call opened a file chooser, in which it chose nothing."""
        self._active: Page | None = None
        self._dialogs: list[Dialog] = []
        self._dialog_event = asyncio.Event()
        self._action: asyncio.Future[None] | None = None
        self._in_background = False
        self._background_tasks: set[asyncio.Task[None]] = set()
        self._saving: set[asyncio.Task[None]] = set()
        self._downloads: list[str] = []
        self._errors: list[str] = []
        context.set_default_timeout(ACTION_TIMEOUT * 1000)
        context.set_default_navigation_timeout(NAVIGATION_TIMEOUT * 1000)
        context.on("page", self._on_page)
        context.on("dialog", self._on_dialog)
        context.on("dialogclosed", self._on_dialog_closed)
        context.on("download", self._on_download)
        context.on("console", self._on_console)
        context.on("weberror", self._on_web_error)

    @property
    def dialog(self) -> Dialog | None:
        """The dialog to answer first."""
        return self._dialogs[0] if self._dialogs else None

    @property
    def is_saving(self) -> bool:
        """Whether a download has begun and not ended."""
        return bool(self._saving)

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
        self._active = await self.context.new_page()

    async def replace_tab(self) -> Page:
        """Open a blank tab in place of the current one, and return its page."""
        previous = await self.page()
        await self.open_tab()
        self._remove_page(previous)
        self._run_in_background(previous.close())
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
        self._active = self.pages[index]
        await self.pages[index].bring_to_front()

    async def do(self, action: Coroutine[Any, Any, None]) -> bool:
        """Run an action until the page is quiet or opens a dialog; return False if the page keeps loading.

        Exceptions of the action are raised.
        """
        self.traffic.begin()
        self.asks_for_file = False
        self._action = asyncio.ensure_future(action)
        if not await self._until_dialog(self._action):
            return True
        self._action.result()
        return await self._settle()

    async def answer(self, *, accept: bool) -> bool:
        """Answer the dialog, and resume the action that it blocked, as ``do`` does."""
        self.traffic.begin()
        dialog, typed, self.typed = self._dialogs.pop(0), self.typed, ""
        if not self._dialogs:
            self._dialog_event.clear()
        with contextlib.suppress(PlaywrightError):  # the page closed the dialog
            await (dialog.accept(typed or dialog.default_value) if accept else dialog.dismiss())
        if self._action is not None and not self._action.done():
            waiting = asyncio.ensure_future(asyncio.wait([self._action], timeout=_RESUME_TIMEOUT))
            if not await self._until_dialog(waiting):
                return True
            if not self._action.done():
                self._action.cancel()
        return await self._settle()

    async def during(self, work: asyncio.Future[Any]) -> bool:
        """Wait for work that ends only while no dialog is open; if one opens, cancel the work and return False."""
        if await self._until_dialog(work):
            return True
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return False

    def take_downloads(self) -> list[str]:
        """Return the paths of new downloads, and clear them."""
        paths, self._downloads = self._downloads, []
        return paths

    def take_errors(self) -> list[str]:
        """Return the pages' new errors, and clear them."""
        errors, self._errors = self._errors, []
        return errors

    async def close(self) -> None:
        """Close all tabs and the context."""
        for task in self._saving:
            task.cancel()
        with contextlib.suppress(PlaywrightError):
            await self.context.close()

    async def _until_dialog(self, work: asyncio.Future[Any]) -> bool:
        """Wait for ``work`` or a dialog; return False for a dialog. Cancelling this call cancels the work."""
        dialog_wait = asyncio.ensure_future(self._dialog_event.wait())
        try:
            await asyncio.wait({work, dialog_wait}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            dialog_wait.cancel()
        if work.done():
            return True
        work.add_done_callback(drop_exception)
        return False

    async def _settle(self) -> bool:
        quiet = asyncio.ensure_future(self.traffic.quiet(lambda: self._active))
        if not await self.during(quiet):
            return True
        if self._saving:
            await asyncio.wait(self._saving, timeout=_DOWNLOAD_TIMEOUT)
        return quiet.result()

    def _on_page(self, page: Page) -> None:
        if self._in_background:
            return
        self.pages.append(page)
        self._active = page
        page.on("close", self._remove_page)
        page.on("crash", self._on_crash)
        # Playwright asks Chromium for these events while someone listens. A click right after the first listener is
        # faster than the request, and its file chooser is lost.
        page.on("filechooser", self._on_file_chooser)
        page.on("framenavigated", lambda _: self._close_if_without_page(page))
        self._close_if_without_page(page)

    def _on_file_chooser(self, _: FileChooser) -> None:
        self.asks_for_file = True

    def _close_if_without_page(self, page: Page) -> None:
        """Close a tab that a download opened: without a screen Chromium does not, and the tab never responds."""
        if page.url in _NO_PAGE:
            self._run_in_background(page.close())

    def _remove_page(self, page: Page) -> None:
        if page not in self.pages:
            return
        index = self.pages.index(page)
        self.pages.remove(page)
        self._dialogs = [dialog for dialog in self._dialogs if dialog.page is not page]
        if not self._dialogs:
            self._dialog_event.clear()
        if self._active is page:
            self._active = self.pages[max(0, index - 1)] if self.pages else None

    async def _on_crash(self, page: Page) -> None:
        self._add_error("A page crashed; its tab was closed.")
        self._remove_page(page)
        with contextlib.suppress(PlaywrightError):
            await page.close()

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.page is not None and dialog.page not in self.pages:
            self._run_in_background(dialog.dismiss())
            return
        self._dialogs.append(dialog)
        self._dialog_event.set()

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run as a background task."""
        task = asyncio.ensure_future(work)
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)
        task.add_done_callback(drop_exception)

    def _on_dialog_closed(self, dialog: Dialog) -> None:
        if dialog in self._dialogs:
            self._dialogs.remove(dialog)
        if not self._dialogs:
            self._dialog_event.clear()

    def _on_download(self, download: Download) -> None:
        task = asyncio.ensure_future(self._save(download))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def _save(self, download: Download) -> None:
        name = os.path.basename(download.suggested_filename).lstrip(".") or "download"
        folder = self.workspace / DOWNLOADS
        stem, dot, kind = name.partition(".")
        try:
            if why := await download.failure():  # waits for the end: a file in the workspace is whole
                raise OSError(why)
            folder.mkdir(exist_ok=True)
            number = 1
            while True:
                path = folder / (name if number == 1 else f"{stem}-{number}{dot}{kind}")
                number += 1
                with contextlib.suppress(FileExistsError):
                    path.touch(exist_ok=False)
                    break
            await download.save_as(path)
            self._downloads.append(f"{DOWNLOADS}/{path.name}")
        except (PlaywrightError, OSError) as error:
            self._add_error(f"The download of {name} failed: {error}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._add_error(message.text)

    def _on_web_error(self, error: WebError) -> None:
        self._add_error(str(error.error).partition("\n")[0])

    def _add_error(self, text: str) -> None:
        if len(self._errors) < _ERRORS:
            self._errors.append(text if len(text) <= _ERROR_LENGTH else f"{text[: _ERROR_LENGTH - 3]}...")


def drop_exception(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned task, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
