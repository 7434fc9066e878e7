"""Where the browser is sent, as far as it can be told for certain from an action's text.

The text may be written by a model that reads pages: what a browser, or the sandbox's reader of calls, could take for
something else is not understood at all.
"""

from __future__ import annotations

import re

from handiwork.events.action import BrowseInteractiveAction, BrowseURLAction

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9][a-z0-9.-]*)(?::(?P<port>\d{1,5}))?(?:[/?#][!-\[\]-~]*)?", re.IGNORECASE
)
_TEXT = r"""(?:'[^'"\\()#\n]*'|"[^'"\\()#\n]*")"""
_VALUE = rf"(?:{_TEXT}|-?\d+(?:\.\d+)?)"
_CALL = re.compile(rf"(?P<name>[a-z_]+)\((?P<given>(?:{_VALUE}(?:, ?{_VALUE})*)?)\)")
_PORTS = {"http": "80", "https": "443"}
_STILL = frozenset({"noop", "send_msg_to_user", "report_infeasible"})
_LOOKS = _STILL | {"scroll", "tab_focus"}


def origin(url: str) -> str | None:
    """Return the URL's scheme, host and port as ``https://host`` or ``http://host:8080``; None for any other URL."""
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme, port = found["scheme"].lower(), found["port"]
    at = "" if port is None or port == _PORTS[scheme] else f":{port}"
    return f"{scheme}://{found['host'].lower()}{at}"


def origins(action: BrowseURLAction | BrowseInteractiveAction) -> frozenset[str] | None:
    """Return where the action goes, if that is all it does; None where it may do more, or go elsewhere."""
    if isinstance(action, BrowseURLAction):
        urls = [action.url]
    else:
        calls = _calls(action.browser_actions)
        if calls is None or any(name not in _LOOKS and name != "goto" for name, _ in calls):
            return None
        urls = [given[1:-1] for name, given in calls if name == "goto"]
    found = [origin(url) for url in urls]
    return None if not found or None in found else frozenset(one for one in found if one is not None)


def only_looks(action: BrowseInteractiveAction) -> bool:
    """Whether the calls do nothing to a page, and leave it as it is shown: they wait or speak."""
    calls = _calls(action.browser_actions)
    return calls is not None and all(name in _STILL for name, _ in calls)


def _calls(text: str) -> list[tuple[str, str]] | None:
    """Return the calls' names and arguments; None where the text is anything but plain calls, one a line."""
    found = [_CALL.fullmatch(line.strip(" \t")) for line in text.split("\n") if line.strip(" \t")]
    return [(call["name"], call["given"]) for call in found if call is not None] if found and all(found) else None
