"""Explains Playwright's errors to an agent."""

from __future__ import annotations

import asyncio
import contextlib
import re

from playwright.async_api import ElementHandle
from playwright.async_api import Error as PlaywrightError

_COVERING = """element => {
  const box = element.getBoundingClientRect();
  let top = element.ownerDocument.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  if (element.contains(top)) return null;
  while (top && !top.getAttribute("bid")) top = top.parentElement;
  return top ? top.getAttribute("bid") : null;
}"""
_AT_POINT = """([x, y]) => {
  let top = document.elementFromPoint(x, y);
  while (top && !top.getAttribute("bid")) top = top.parentElement;
  return top && !["IFRAME", "FRAME"].includes(top.tagName) ? top.getAttribute("bid") : null;
}"""
_OPTION = """element => {
  const select = element.tagName === "OPTION" && element.closest("select");
  return select ? `[${select.getAttribute("bid")}]: give select_option the bid of that, and '${element.label}'` : "";
}"""
_KIND = "element => element.tagName.toLowerCase()"
_LOOKING = 1.0  # seconds to find the details
_CODE = re.compile(r"net::(ERR_[A-Z_]+)")
_PREFIX = re.compile(r"^(?:Error: |\w+\.\w+: )*")

_NETWORK = {
    "ERR_NAME_NOT_RESOLVED": "there is no such host, or this sandbox has no network",
    "ERR_INTERNET_DISCONNECTED": "this sandbox has no network",
    "ERR_ADDRESS_UNREACHABLE": "the address cannot be reached: this sandbox has no network, or not to there",
    "ERR_NETWORK_ACCESS_DENIED": "this sandbox has no network",
    "ERR_TUNNEL_CONNECTION_FAILED": "the host is not one that this sandbox may reach",
    "ERR_PROXY_CONNECTION_FAILED": "the sandbox's way out does not answer",
    "ERR_CONNECTION_REFUSED": "nothing listens there: is the server running in this sandbox, on this port?",
    "ERR_CONNECTION_RESET": "the server ended the connection",
    "ERR_EMPTY_RESPONSE": "the server ended the connection without an answer",
    "ERR_FILE_NOT_FOUND": "there is no such file",
    "ERR_CERT_AUTHORITY_INVALID": "the server's certificate is not trusted",
    "ERR_CERT_COMMON_NAME_INVALID": "the server's certificate is for another host",
    "ERR_CERT_DATE_INVALID": "the server's certificate has expired or is not valid yet",
    "ERR_SSL_PROTOCOL_ERROR": "the server does not speak https there: is it http?",
    "ERR_INVALID_RESPONSE": "the server answered with an error, or with no page",
    "ERR_UNSAFE_PORT": "browsers do not use this port",
    "ERR_INVALID_URL": "it is no URL",
    "ERR_TOO_MANY_REDIRECTS": "the server sends from one address to another without end",
}


def network_failure(url: str, failure: str) -> str:
    """Return why ``url`` could not be loaded, from the browser's ``failure``, such as net::ERR_CONNECTION_REFUSED."""
    code = _CODE.search(failure)
    name = code[1] if code else failure
    return f"{_cut(url)} could not be loaded: {_NETWORK.get(name, 'the network failed')} ({name})"


async def element_failure(element: ElementHandle, bid: str, error: PlaywrightError) -> str:
    """Return why an action on the element [``bid``] failed."""
    text = error.message
    if "not attached" in text or "Cannot find context" in text or "was destroyed" in text:
        return f"[{bid}] disappeared from the page meanwhile: look at the page again"
    if "Element is not" in text or "Not a checkbox" in text or "not an <input>" in text:
        return f"[{bid}] is a <{await _ask(element, _KIND)}>, with which this cannot be done: {_first_line(text)}"
    if "intercepts pointer events" in text:
        other = await _covering(element)
        return (
            f"[{bid}] is covered by {f'[{other}]' if other else 'something else'}, which would get the click: "
            "close that, or scroll"
        )
    if option := await _ask(element, _OPTION):
        return f"[{bid}] is an option of {option}"
    if "not visible" in text:
        return f"[{bid}] is not visible: something else shows it, or stands for it, such as a menu or its label"
    if "option being selected is not enabled" in text:
        return f"this option of [{bid}] is disabled: choose another one, or what enables it first"
    if "not enabled" in text:
        return f"[{bid}] is disabled: something else enables it, such as a field to fill first; noop(2000) waits"
    if "not editable" in text or "readonly" in text:
        return f"[{bid}] is read-only: something else sets it, such as a button beside it"
    if "outside of the viewport" in text:
        return f"[{bid}] cannot be scrolled into the window: something else may stand for it, such as its label"
    if "not stable" in text:
        return f"[{bid}] does not stop moving: noop(2000) waits"
    if "did not find some options" in text:
        return f"[{bid}] does not have all of these options: {await _options(element)}"
    return f"[{bid}]: {failure(error)}"


def failure(error: PlaywrightError) -> str:
    """Return the meaning of an error in one line."""
    text = error.message
    if code := _CODE.search(text):
        url = re.search(r" at (\S+)", text)
        return network_failure(url[1] if url else "the page", code[0])
    if "Unknown key" in text:
        return (
            f"{_first_line(text)}. Keys are named as in browsers: Enter, Tab, Escape, Backspace, ArrowDown, a, A, F5; "
            "with Control, Shift, Alt or Meta before them as in Control+a"
        )
    if "Target crashed" in text or "Page crashed" in text:
        return "the page crashed"
    if "has been closed" in text:
        return "the tab was closed meanwhile"
    if "Timeout" in text and "exceeded" in text:
        return "it took too long"
    return _first_line(text)


def _first_line(text: str) -> str:
    return _cut(_PREFIX.sub("", text.strip().partition("\n")[0]).rstrip("."), 300)


async def _covering(element: ElementHandle) -> str:
    """Return the bid of the element above the middle of this one, in its document or above its frame; "" if unknown."""
    if other := await _ask(element, _COVERING):
        return other
    with contextlib.suppress(PlaywrightError, TimeoutError):
        async with asyncio.timeout(_LOOKING):
            frame, box = await element.owner_frame(), await element.bounding_box()
            if frame is not None and frame.parent_frame is not None and box is not None:
                middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
                return str(await frame.page.main_frame.evaluate(_AT_POINT, middle) or "")
    return ""


async def _options(element: ElementHandle) -> str:
    labels = await _ask(element, "element => [...element.options || []].map(option => option.label).join(', ')")
    return f"there are {_cut(labels, 3_000)}" if labels else "it has none"


async def _ask(element: ElementHandle, script: str) -> str:
    try:
        return str(await asyncio.wait_for(element.evaluate(script), _LOOKING) or "")
    except (PlaywrightError, TimeoutError):
        return ""


def _cut(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
