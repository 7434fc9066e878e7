"""The actions on elements, which an agent refers to by their bids: short names that marks.js assigns."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from playwright.async_api import ElementHandle, FloatRect, Page
from playwright.async_api import Error as PlaywrightError

from ..explain import element_failure
from ..window import ACTION_TIMEOUT, Window

Button = Literal["left", "middle", "right"]
Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]

_BID = re.compile(r"(?P<frames>(?:[a-z][A-Z]*)*)(?P<number>[0-9]*)")
_FRAME = re.compile(r"[a-z][A-Z]*")
_TYPING = 30.0  # milliseconds between keys, as autocomplete menus need them
_CHANGING = 0.5  # seconds in which a box that was clicked changes its state
_DONE = re.compile(r"(?m)^\s*(?:- )?[a-z]+ action done$")  # as in Playwright's log of a call
_PICKERS = "['date', 'time', 'month', 'week', 'datetime-local', 'range', 'color'].includes(element.type)"
# Keys write such a value in parts, or not at all.
_PICKED = f"element => {_PICKERS}"
# Some fields silently drop values that are not in their format.
_REFUSED = f"element => element.value === '' && {_PICKERS}"
# A page may move the focus on as soon as the element has it.
_FOCUS = """element => {
  let taken = false;
  element.addEventListener("focus", () => taken = true, {once: true});
  element.focus();
  return taken || element.getRootNode().activeElement === element;
}"""
_IS_LIST = "element => element.tagName !== 'SELECT' && element.getAttribute('role') === 'listbox'"
_OPTION = """(list, wanted) => {
  const plain = (text) => (text ?? "").trim().replace(/\\s+/g, " ");
  const isWanted = (text) => plain(text) !== "" && plain(text) === plain(wanted);
  const options = [...list.querySelectorAll("[role=option]")];
  return options.find((one) => isWanted(one.getAttribute("aria-label")) || isWanted(one.textContent));
}"""
# The places of the options with these labels, which the agent sees with their group's label before them. A label comes
# before a value: null if one of them is no label.
_PLACES = """(element, all) => {
  const options = [...element.options ?? []];
  const group = (option) => (option.closest("optgroup")?.label ?? "").trim();
  const isNamed = (option, name) => option.label === name || `${group(option)}: ${option.label.trim()}` === name;
  const places = all.map((name) => options.findIndex((option) => isNamed(option, name)));
  return places.includes(-1) ? null : places;
}"""
_TAKES_SEVERAL = "element => element.tagName !== 'SELECT' || element.multiple"
_FORMATS = (
    "Dates are written as 2026-12-31, times as 23:59, both as 2026-12-31T23:59, months as 2026-12, weeks as 2026-W52"
)


class DoneWrong(Exception):  # noqa: N818 - named for the agent's mistake
    """An action failed; the message tells the agent why."""


@asynccontextmanager
async def element(window: Window, bid: str) -> AsyncGenerator[tuple[ElementHandle, Page]]:
    """Yield the element with this bid, and its page; errors are raised as DoneWrong."""
    page = await window.page()
    target = await _locate(page, bid)
    try:
        yield target, page
    except PlaywrightError as error:
        # The page's reaction to a completed action is waited for once more, with more patience.
        if not _DONE.search(error.message):
            raise DoneWrong(await element_failure(target, bid, error)) from None


async def _locate(page: Page, bid: str) -> ElementHandle:
    """Return the element with this bid, in any frame or open shadow root. Raises DoneWrong."""
    parts = _BID.fullmatch(bid)
    if not bid or parts is None:
        raise DoneWrong(
            f"{bid!r} is not a bid: a bid is what stands in brackets before an element, such as '12' or 'a5'"
        )
    frame, prefix = page.main_frame, ""
    for letters in _FRAME.findall(parts["frames"]):
        prefix += letters
        if prefix == bid:
            break
        owner = await frame.query_selector(f'[bid="{prefix}"]')
        inside = await owner.content_frame() if owner else None
        if inside is None:
            raise _missing(bid, f", nor a frame [{prefix}] that it would be in")
        frame = inside
    target = await frame.query_selector(f'[bid="{bid}"]')
    if target is None:
        raise _missing(bid)
    return target


def _missing(bid: str, more: str = "") -> DoneWrong:
    return DoneWrong(
        f"there is no element [{bid}] on the page now{more}: the page has changed since, look at it again "
        "and take a bid from what it shows"
    )


async def click(window: Window, bid: str, button: Button = "left", modifiers: list[Modifier] = []) -> None:  # noqa: B006
    """Click an element."""
    async with element(window, bid) as (target, _):
        await target.click(button=button, modifiers=modifiers)


async def dblclick(window: Window, bid: str, button: Button = "left", modifiers: list[Modifier] = []) -> None:  # noqa: B006
    """Click an element twice."""
    async with element(window, bid) as (target, _):
        await target.dblclick(button=button, modifiers=modifiers)


async def hover(window: Window, bid: str) -> None:
    """Move the mouse over an element."""
    async with element(window, bid) as (target, _):
        await target.hover()


async def press(window: Window, bid: str, key_comb: str) -> None:
    """Press keys, such as Enter or Control+a, in an element."""
    async with element(window, bid) as (target, _):
        # The page's reaction is waited for afterwards, with more patience.
        await target.press(key_comb, no_wait_after=True)


async def focus(window: Window, bid: str) -> None:
    """Give an element the focus."""
    async with element(window, bid) as (target, _):
        if not await target.evaluate(_FOCUS):
            raise DoneWrong(f"[{bid}] does not take the focus: focus a field, link or button, or click it")


async def clear(window: Window, bid: str) -> None:
    """Empty a field."""
    async with element(window, bid) as (target, _):
        await target.fill("")


async def fill(window: Window, bid: str, value: str, enable_autocomplete_menu: bool = False) -> None:
    """Fill a field; with an autocomplete menu the value of a text field is typed key by key."""
    async with element(window, bid) as (target, page):
        # A line break that is typed would press Enter, which may send the form.
        typed = enable_autocomplete_menu and not {"\r", "\n"} & set(value)
        if not typed or await target.evaluate(_PICKED):
            await target.fill(value)
            if value and await target.evaluate(_REFUSED):
                raise DoneWrong(f"[{bid}] is empty now: it does not take {value[:100]!r}. {_FORMATS}")
            return
        await target.fill("")
        await target.focus()
        await page.keyboard.type(value, delay=_TYPING)


async def check(window: Window, bid: str) -> None:
    """Check a box or a radio button."""
    async with element(window, bid) as (target, _):
        await _set_checked(target, bid, True)


async def uncheck(window: Window, bid: str) -> None:
    """Uncheck a box."""
    async with element(window, bid) as (target, _):
        await _set_checked(target, bid, False)


async def _set_checked(target: ElementHandle, bid: str, checked: bool) -> None:
    try:
        await target.set_checked(checked)
    except PlaywrightError as error:
        if "did not change its state" not in error.message:
            raise
        # Playwright looks at once, but a page may change the state a little later.
        await asyncio.sleep(_CHANGING)
        if await target.is_checked() is not checked:
            state = "unchecked" if checked else "checked"
            raise DoneWrong(f"[{bid}] was clicked and is still {state}: the page keeps it so") from None


async def select_option(window: Window, bid: str, options: str | list[str]) -> None:
    """Select options, by their values or labels, and nothing else; those of an ARIA listbox are clicked."""
    async with element(window, bid) as (target, _):
        if isinstance(options, list) and len(options) > 1 and not await target.evaluate(_TAKES_SEVERAL):
            raise DoneWrong(f"[{bid}] takes only one option, not {len(options)}")
        if await target.evaluate(_IS_LIST):
            for wanted in [options] if isinstance(options, str) else options:
                option = (await target.evaluate_handle(_OPTION, wanted)).as_element()
                if option is None:
                    raise DoneWrong(f"[{bid}] has no option {wanted[:100]!r}")
                await option.click()
            return
        labels = [options] if isinstance(options, str) else options
        places = await target.evaluate(_PLACES, labels)
        if places is None:
            await target.select_option(labels)
        else:
            await target.select_option(index=places)


async def drag_and_drop(window: Window, from_bid: str, to_bid: str) -> None:
    """Drag an element onto another one."""
    async with element(window, from_bid) as (source, page):
        await source.hover()
        await page.mouse.down()
    try:
        async with element(window, to_bid) as (target, _):
            # A drag begins with the first move, before the scroll to the target takes the source away.
            if box := await target.bounding_box():
                await page.mouse.move(*_nearest(page, box))
            # The target notices the drag only at the second move.
            await target.hover()
            await target.hover()
    finally:
        await page.mouse.up()


def _nearest(page: Page, box: FloatRect) -> tuple[float, float]:
    """Return the point of the window that is nearest to the middle of a box."""
    size = page.viewport_size or {"width": 1, "height": 1}
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return min(max(x, 0), size["width"] - 1), min(max(y, 0), size["height"] - 1)


async def upload_file(window: Window, bid: str, file: str | list[str]) -> None:
    """Choose files of the workspace in a file field, or in the file chooser that a click opens."""
    paths = workspace_files(window, file)
    async with element(window, bid) as (target, page):
        if await target.evaluate("element => element.type == 'file'"):
            await target.set_input_files(paths)
            return
        try:
            async with page.expect_file_chooser(timeout=ACTION_TIMEOUT * 1000) as chooser:
                await target.click()
        except PlaywrightError as error:
            if "filechooser" not in error.message:
                raise
            raise DoneWrong(f"[{bid}] does not ask for a file when it is clicked") from None
        await (await chooser.value).set_files(paths)
        window.asks_for_file = False


def workspace_files(window: Window, file: str | list[str]) -> list[str]:
    """Return the paths of files, which are relative to the workspace. Raises DoneWrong."""
    names = [file] if isinstance(file, str) else list(file)
    paths = [os.path.join(window.workspace, name) for name in names]
    for name, path in zip(names, paths, strict=True):
        if not os.path.isfile(path) or not os.access(path, os.R_OK):
            raise DoneWrong(f"there is no file {name!r} to upload: give a path in the workspace, {window.workspace}")
    return paths
