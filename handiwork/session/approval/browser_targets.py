"""Find the origins that a browser action visits.

A model that reads untrusted pages may write the action's text, so the parser rejects any text that a browser or the
sandbox's call parser could read differently.
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
    """Return the origins that the action visits; None if it may do more than visit them, or may visit others."""
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
    """Return whether the calls only wait or send a message, and leave the page and its view unchanged."""
    calls = _calls(action.browser_actions)
    return calls is not None and all(name in _STILL for name, _ in calls)


def _calls(text: str) -> list[tuple[str, str]] | None:
    """Return the calls' names and arguments; None if the text is anything but plain calls, one per line."""
    found = [_CALL.fullmatch(line.strip(" \t")) for line in text.split("\n") if line.strip(" \t")]
    return [(call["name"], call["given"]) for call in found if call is not None] if found and all(found) else None
