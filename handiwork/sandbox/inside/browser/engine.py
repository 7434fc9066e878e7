"""Executes an agent's requests in the browser and returns observations."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Dialog
from playwright.async_api import Error as PlaywrightError

from .actions.calls import CallError, PrimitiveCall, parse_calls
from .actions.elements import DoneWrong
from .actions.primitives import ACTIONS
from .cdp.chromium import Chromium
from .explain import failure
from .observation.observe import Look, look
from .traffic import LOADING, responds
from .window import Window

BUDGET = 50.0
"""Seconds for all calls of one request together."""

LOOKING, LOOKING_STUCK = 40.0, 2.0
"""Seconds for observing a page, and for observing one whose scripts do not end."""

_T = TypeVar("_T")

_HURRY = 0.5  # seconds for an observation after an interrupt
_SILENT = frozenset({"send_msg_to_user", "report_infeasible"})
_ASKS_FOR_FILE = "The page asks for a file, and none was chosen: upload_file(bid, file) on that element chooses one."
_DOWNLOADING = "A download is not finished yet: noop(5000) waits for it."
_INTERRUPTED = "interrupted: what was done until then stays, the rest was not run"


class LostError(Exception):
    """The browser crashed or does not start; the message tells the agent."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The requested form of an observation: ``view`` as for look(), and the files for its pictures."""

    view: str
    screenshot: Path
    marked: Path | None


class Engine:
    """One browser for one agent, started at the first request. Handles one request at a time."""

    def __init__(self, executable: Path, workspace: Path) -> None:
        self._executable, self._workspace = executable, workspace
        self._folder = tempfile.TemporaryDirectory(prefix="handiwork-browser-")
        self._starting: asyncio.Future[Chromium] | None = None
        self._window: Window | None = None
        self._current: asyncio.Future[Any] | None = None
        self._interrupted = False

    async def act(self, text: str, wish: Wish) -> dict[str, Any]:
        """Run the calls in ``text`` and return the observation's fields. Raises LostError."""
        try:
            calls, error = parse_calls(text, ACTIONS), ""
        except CallError as problem:
            calls, error = [], str(problem)
        return await self._answer(calls, error, wish)

    async def goto(self, url: str, wish: Wish) -> dict[str, Any]:
        """Open a URL and return the observation's fields. Raises LostError."""
        return await self._answer([PrimitiveCall("goto", {"url": url}, f"goto({url!r})")], "", wish)

    def interrupt(self) -> None:
        """Stop the running request; it answers with a partial result."""
        self._interrupted = True
        if self._current is not None:
            self._current.cancel()

    async def window(self) -> Window:
        """Return the window, a new one if there is none. Raises LostError."""
        if self._window is None:
            self._window = await self.new_window()
            await self._window.open_tab()
        elif not (await self.chromium()).alive:
            await self.close()
            raise LostError("The browser had crashed. The next action starts a new one, at a blank page.")
        return self._window

    async def new_window(self, **options: Any) -> Window:
        """Return an empty window; ``options`` are those of a context. Raises LostError, PlaywrightError."""
        return Window(await (await self.chromium()).new_context(**options), self._workspace)

    async def replace(self, window: Window) -> None:
        """Use this window from now on, and close the previous one."""
        before, self._window = self._window, window
        if before is not None:
            await before.close()

    async def close_window(self) -> None:
        """Close the window, which writes its recordings; the next request opens another one."""
        window, self._window = self._window, None
        if window is not None:
            await window.close()

    async def chromium(self) -> Chromium:
        """Return the browser, after starting it if needed. Raises LostError."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(Chromium.start(self._executable, Path(self._folder.name)))
        try:
            # An interrupted caller does not stop the start half-way.
            return await asyncio.shield(self._starting)
        except (PlaywrightError, OSError) as error:
            self._starting = None
            raise LostError(f"The browser does not start: {str(error)[:1000]}") from error

    async def close(self) -> None:
        """End the browser; the next request starts another one."""
        await self.close_window()
        starting, self._starting = self._starting, None
        if starting is not None:
            with contextlib.suppress(PlaywrightError, OSError):
                await (await starting).close()

    async def _answer(self, calls: list[PrimitiveCall], error: str, wish: Wish) -> dict[str, Any]:
        self._interrupted = False
        try:
            window = await self._interruptible(self.window(), None)
            if window is None:
                return {"url": "about:blank", "last_action_error": _INTERRUPTED, "text": ""}
            note = ""
            if not error:
                outcome = await self._interruptible(_perform(window, calls), BUDGET)
                reason = _INTERRUPTED if self._interrupted else f"stopped after {BUDGET:.0f} s: the rest was not run"
                error, note = (reason, "") if outcome is None else outcome
            return {**await self._observation(window, wish, note), "last_action_error": error}
        except PlaywrightError as lost:
            if self._starting is not None and (await self.chromium()).alive:
                raise LostError(f"The browser failed: {failure(lost)}.") from lost
            await self.close()
            raise LostError("The browser crashed. The next action starts a new one, at a blank page.") from lost

    async def _interruptible(self, work: Coroutine[Any, Any, _T], timeout: float | None) -> _T | None:
        """Return the result of the work, None if it was interrupted or took longer than ``timeout`` seconds."""
        self._current = task = asyncio.ensure_future(work)
        if self._interrupted:
            task.cancel()
        try:
            await asyncio.wait([task], timeout=timeout)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            return None if task.cancelled() else task.result()
        finally:
            self._current = None

    async def _observation(self, window: Window, wish: Wish, note: str) -> dict[str, Any]:
        page = await window.page()
        snapshot: Look | None = None
        if window.dialog is None:
            chromium = await self.chromium()
            patience = _HURRY if self._interrupted else LOOKING if await responds(page) else LOOKING_STUCK
            observing = look(page, chromium.devtools, view=wish.view, marks=wish.marked is not None)
            task = asyncio.ensure_future(asyncio.wait_for(observing, patience))
            self._current = task
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                if await window.during(task):
                    snapshot = task.result()
            self._current = None
        answer: dict[str, Any] = {
            "url": _cut(snapshot.url if snapshot else page.url, 2000),
            "title": _cut(snapshot.title if snapshot else "", 1000),
            "focused_element": snapshot.focused if snapshot else "",
            "open_pages": [_cut(each.url, 2000) for each in window.pages],
            "active_page": window.active,
            "messages": window.messages,
            "infeasible": window.infeasible,
            "downloads": window.take_downloads(),
            "console": window.take_errors(),
            "dialog": "",
        }
        window.messages, window.infeasible = [], ""
        if window.dialog is not None:
            answer["dialog"] = describe_dialog(window.dialog, window.typed)
            text = "[A dialog is open, and the page stands still until it is answered.]"
        elif snapshot is None:
            reason = "this was interrupted" if self._interrupted else "its scripts are busy"
            text = (
                f"[The page did not show itself in time: {reason}. noop() waits and looks again, goto(url) leaves it.]"
            )
        else:
            text = snapshot.text
            if snapshot.screenshot:
                wish.screenshot.write_bytes(snapshot.screenshot)
            if snapshot.marked and wish.marked:
                wish.marked.write_bytes(snapshot.marked)
        return {**answer, "text": f"[{note}]\n{text}" if note else text}


async def _perform(window: Window, calls: list[PrimitiveCall]) -> tuple[str, str]:
    """Run the calls up to the first failure; return its reason, and a note about the page."""
    quiet = True
    for number, call in enumerate(calls, 1):
        problem = ""
        try:
            quiet = await _run(window, call)
            problem = window.traffic.failure
        except DoneWrong as error:
            problem = str(error)
        except PlaywrightError as error:
            problem = failure(error)
        if problem:
            position = f"call {number} of {len(calls)}, " if len(calls) > 1 else ""
            rest = " What follows it was not run." if number < len(calls) else ""
            return f"{position}{_cut(call.text, 200)}: {problem}.{rest}", window.traffic.status
    warning = "" if quiet else f"The page had not finished loading after {LOADING:.0f} s."
    asked = _ASKS_FOR_FILE if window.asks_for_file else ""
    return "", window.traffic.status or warning or asked or (_DOWNLOADING if window.is_saving else "")


async def _run(window: Window, call: PrimitiveCall) -> bool:
    """Run one call; return False if the page keeps loading."""
    action = ACTIONS[call.name]
    if call.name in _SILENT:
        await action(window, **call.arguments)
        return True
    if window.dialog is None:
        return await window.do(action(window, **call.arguments))
    match call.name, call.arguments:
        case "keyboard_press", {"key": "Enter" | "Escape" as key}:
            return await window.answer(accept=key == "Enter")
        case "keyboard_type" | "keyboard_insert_text", {"text": str(text)} if window.dialog.type == "prompt":
            window.typed += text
        case "noop", _:
            await action(window, **call.arguments)
        case _:
            raise DoneWrong(
                f"a dialog is open and must be answered first: {describe_dialog(window.dialog, window.typed)}"
            )
    return True


def describe_dialog(dialog: Dialog, typed: str) -> str:
    """Return a dialog's text and the calls that answer it."""
    accept, dismiss = 'keyboard_press("Enter")', 'keyboard_press("Escape")'
    if dialog.type == "beforeunload":
        return f"the page asks whether to leave it, as changes may be lost: {accept} leaves, {dismiss} stays"
    message = f'{dialog.type}: "{_cut(dialog.message, 2000)}"'
    match dialog.type:
        case "alert":
            return f"{message} - {accept} closes it"
        case "prompt":
            answer = f', its answer is now "{typed or dialog.default_value}"'
            return f'{message}{answer} - keyboard_type("...") writes another, {accept} sends it, {dismiss} cancels'
        case _:
            return f"{message} - {accept} accepts, {dismiss} cancels"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
