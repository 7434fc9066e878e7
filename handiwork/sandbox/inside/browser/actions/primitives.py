"""All actions of the browser's action language, which is BrowserGym's; those on elements are in elements.py."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urljoin

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Frame

from ..explain import failure
from ..traffic import responds
from ..window import ACTION_TIMEOUT, Window, drop_exception
from . import elements
from .elements import Button, DoneWrong, workspace_files

LONGEST_WAIT = 30_000
"""Milliseconds that noop may wait."""

_SCHEMES = ("http:", "https:", "file:", "data:", "about:")
_PAGE_NAME = re.compile(r"[^/:]+\.html?(?:[?#].*)?", re.IGNORECASE)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?!\d+([/?#]|$))")  # not a host with a port
_STEPS = 5  # moves of a mouse that drags
# The middle of the largest pane that scrolls, or else frame, if neither the page nor what is under the mouse does.
_PANE = """() => {
  const style = (element) => getComputedStyle(element).overflowY;
  const scrolls = (element) => element.scrollHeight > element.clientHeight + 1 && /auto|scroll/.test(style(element));
  const page = document.scrollingElement ?? document.documentElement;
  const fixed = [page, document.body].some((root) => root && /hidden|clip/.test(style(root)));
  if (page.scrollHeight > innerHeight + 1 && !fixed) return null;
  // The document of another origin is null here, and may scroll.
  const frameScrolls = (element) => /^I?FRAME$/.test(element.tagName) &&
    !(element.contentDocument?.scrollingElement?.scrollHeight <= element.clientHeight + 1);
  // Over a frame, only the elements of its document count as hovered.
  const hovered = (element) => element.matches(":hover") || element.contentDocument?.querySelector(":hover");
  const all = [...document.querySelectorAll("*")];
  if (all.some((element) => hovered(element) && (scrolls(element) || frameScrolls(element)))) return null;
  for (const fits of [scrolls, frameScrolls]) {
    let best = null;
    for (const element of all.filter(fits)) {
      const box = element.getBoundingClientRect();
      const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
      const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
      const area = Math.max(right - left, 0) * Math.max(bottom - top, 0);
      if (area > (best?.area ?? 0)) best = { area, at: [(left + right) / 2, (top + bottom) / 2] };
    }
    if (best) return best.at;
  }
  return null;
}"""


async def noop(window: Window, wait_ms: float = 1000) -> None:
    """Wait."""
    if not 0 <= wait_ms <= LONGEST_WAIT:
        raise DoneWrong(f"wait_ms must be from 0 to {LONGEST_WAIT} milliseconds")
    await asyncio.sleep(wait_ms / 1000)


async def send_msg_to_user(window: Window, text: str) -> None:
    """Say something to the user."""
    window.messages.append(text)


async def report_infeasible(window: Window, reason: str) -> None:
    """Say that the task cannot be done."""
    window.infeasible = reason


async def goto(window: Window, url: str) -> None:
    """Open a URL in the tab that is shown."""
    page = await window.page()
    if not _SCHEME.match(url):
        url = _with_scheme(url, page.url)
    if not url.lower().startswith(_SCHEMES) or (" " in url and not url.startswith(("file:", "data:"))):
        raise DoneWrong(f"{url[:200]!r} cannot be opened: a URL begins with {', '.join(_SCHEMES)} and has no spaces")
    if not await responds(page):
        page = await window.replace_tab()
    try:
        await page.goto(url, wait_until="commit")
    except PlaywrightError as error:
        if "Download is starting" in error.message or "ERR_ABORTED" in error.message:
            return
        if "Timeout" in error.message:
            raise DoneWrong(f"{url[:200]} did not answer in time") from None
        raise


def _with_scheme(url: str, page: str) -> str:
    """Return the URL of a path, or of an address without its scheme."""
    if url.startswith("/"):
        return f"file://{url}"
    # No host ends in .html: it is a page beside the one that is shown.
    is_beside = _PAGE_NAME.fullmatch(url) and page.startswith(("http:", "https:", "file:"))
    return urljoin(page, url) if is_beside else f"http://{url}"


async def go_back(window: Window) -> None:
    """Go back in the tab's history."""
    await _go(window, -1)


async def go_forward(window: Window) -> None:
    """Go forward in the tab's history."""
    await _go(window, 1)


async def new_tab(window: Window) -> None:
    """Open a blank tab."""
    await window.open_tab()


async def tab_close(window: Window) -> None:
    """Close the tab that is shown."""
    await (await window.page()).close()
    await window.page()


async def tab_focus(window: Window, index: int) -> None:
    """Show the tab with this index, the first of which is 0."""
    if not 0 <= index < len(window.pages):
        raise DoneWrong(f"there is no tab {index}: there are {len(window.pages)}, from 0 on")
    await window.show_tab(index)


async def scroll(window: Window, delta_x: float, delta_y: float) -> None:
    """Turn the mouse's wheel by so many pixels, right and down if positive; over its pane, if the page stands still."""
    page = await window.page()
    if delta_y and (point := await page.evaluate(_PANE)):
        await page.mouse.move(*point)
    await page.mouse.wheel(delta_x, delta_y)


async def scroll_at(window: Window, x: float, y: float, dx: float, dy: float) -> None:
    """Turn the wheel with the mouse at a point of the window."""
    page = await window.page()
    await page.mouse.move(x, y)
    await page.mouse.wheel(dx, dy)


async def mouse_move(window: Window, x: float, y: float) -> None:
    """Move the mouse to a point of the window, in pixels from its left upper corner."""
    await (await window.page()).mouse.move(x, y)


async def mouse_down(window: Window, x: float, y: float, button: Button = "left") -> None:
    """Press a button of the mouse at a point, and hold it."""
    page = await window.page()
    await page.mouse.move(x, y)
    await page.mouse.down(button=button)


async def mouse_up(window: Window, x: float, y: float, button: Button = "left") -> None:
    """Release a button of the mouse at a point."""
    page = await window.page()
    await page.mouse.move(x, y)
    await page.mouse.up(button=button)


async def mouse_click(window: Window, x: float, y: float, button: Button = "left") -> None:
    """Click at a point."""
    await (await window.page()).mouse.click(x, y, button=button)


async def mouse_dblclick(window: Window, x: float, y: float, button: Button = "left") -> None:
    """Click twice at a point."""
    await (await window.page()).mouse.dblclick(x, y, button=button)


async def mouse_drag_and_drop(window: Window, from_x: float, from_y: float, to_x: float, to_y: float) -> None:
    """Drag from one point to another."""
    page = await window.page()
    await page.mouse.move(from_x, from_y)
    await page.mouse.down()
    await page.mouse.move(to_x, to_y, steps=_STEPS)
    await page.mouse.up()


async def mouse_upload_file(window: Window, x: float, y: float, file: str | list[str]) -> None:
    """Choose files of the workspace after a click at a point, which must ask for them."""
    paths, page = workspace_files(window, file), await window.page()
    try:
        async with page.expect_file_chooser(timeout=ACTION_TIMEOUT * 1000) as chooser:
            await page.mouse.click(x, y)
    except PlaywrightError as error:
        raise DoneWrong(f"a click at {x}, {y} does not ask for a file: {failure(error)}") from None
    await (await chooser.value).set_files(paths)
    window.asks_for_file = False


async def keyboard_down(window: Window, key: str) -> None:
    """Press a key and hold it."""
    await (await window.page()).keyboard.down(key)


async def keyboard_up(window: Window, key: str) -> None:
    """Release a key."""
    await (await window.page()).keyboard.up(key)


async def keyboard_press(window: Window, key: str) -> None:
    """Press keys, such as Enter or Control+a."""
    await (await window.page()).keyboard.press(key)


async def keyboard_type(window: Window, text: str) -> None:
    """Type a text key by key."""
    await (await window.page()).keyboard.type(text)


async def keyboard_insert_text(window: Window, text: str) -> None:
    """Insert a text at once, without key events."""
    await (await window.page()).keyboard.insert_text(text)


async def _go(window: Window, by: int) -> None:
    page = await window.page()
    moved = asyncio.Event()

    def on_move(_: Frame) -> None:
        moved.set()

    # Playwright waits for the page itself, but a step of the history may be one of a frame in it.
    page.on("framenavigated", on_move)
    going = asyncio.ensure_future((page.go_back if by < 0 else page.go_forward)(wait_until="commit"))
    moving = asyncio.ensure_future(moved.wait())
    try:
        await asyncio.wait({going, moving}, return_when=asyncio.FIRST_COMPLETED)
        if not moved.is_set() and await going is None:
            raise DoneWrong(f"there is no page to go {'back' if by < 0 else 'forward'} to in this tab")
    except PlaywrightError as error:
        if "ERR_ABORTED" not in error.message:
            raise
    finally:
        page.remove_listener("framenavigated", on_move)
        moving.cancel()
        going.add_done_callback(drop_exception)
        going.cancel()


ACTIONS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    action.__name__: action
    for action in (
        *(noop, send_msg_to_user, report_infeasible, goto, go_back, go_forward, new_tab, tab_close, tab_focus),
        *(elements.click, elements.dblclick, elements.hover, elements.press, elements.focus, elements.clear),
        *(elements.fill, elements.check, elements.uncheck, elements.select_option),
        *(elements.drag_and_drop, elements.upload_file),
        *(scroll, scroll_at, mouse_move, mouse_down, mouse_up, mouse_click, mouse_dblclick),
        *(mouse_drag_and_drop, mouse_upload_file),
        *(keyboard_down, keyboard_up, keyboard_press, keyboard_type, keyboard_insert_text),
    )
}
"""The actions by their names; their first parameter is the window, the others are the agent's."""
