"""Finds an action's browser calls that may be irreversible, by the elements that they reach.

The facts come from the page just before the calls run. They are data that may lie: a call on an unknown element counts
as irreversible.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, JsonValue

from handiwork.session.approval.irreversible_words import (
    address_names_irreversible_act,
    asks_for_search,
    dismisses,
    is_understood,
    names_irreversible_act,
)

HARMLESS = frozenset(
    {"noop", "send_msg_to_user", "report_infeasible", "scroll", "scroll_at", "hover", "mouse_move", "focus"}
    | {"fill", "clear", "keyboard_insert_text", "keyboard_up"}
)
"""Calls that send nothing by themselves and leave the open page open."""
OPENING = frozenset({"goto", "go_back", "go_forward", "new_tab", "tab_close", "tab_focus"})
"""Calls after which another page may be open."""

_SETTING = frozenset({"check", "uncheck", "select_option"})
_UPLOADING = frozenset({"upload_file", "mouse_upload_file"})
_FOCUSING = frozenset({"fill", "clear", "focus", *_SETTING})
_KEYS = frozenset({"press", "keyboard_press", "keyboard_down"})
_TYPING = _KEYS | {"keyboard_type"}
_SENDING_KEYS = frozenset({"Enter", "NumpadEnter"})
_BREAKS = frozenset("\r\n")
"""Other names of Enter for the browser."""
_PRESSING_KEYS = _SENDING_KEYS | {" ", "Space"}
_DELETING_KEYS = frozenset({"Delete", "Backspace"})
_FIELDS = frozenset(
    {"textbox", "searchbox", "spinbutton", "slider", "combobox", "listbox", "checkbox", "radio", "Date", "DateTime"}
    | {"InputTime", "ColorWell"}
)
_NAME, _URL = 80, 200
"""Maximum characters of a name and of an address in a description."""


class _Target(BaseModel):
    """The facts about an element, as targets.js gives them."""

    role: str = ""
    name: str = ""
    texts: list[str] = []
    link: str = ""
    typed: bool = False
    select: bool = False
    file: bool = False
    submits: bool = False
    form: bool = False
    query: list[str] = []
    dialog: str = ""

    @property
    def names(self) -> list[str]:
        return [text for text in (self.name, *self.texts) if text.strip()]

    @property
    def is_field(self) -> bool:
        return self.role in _FIELDS or self.typed or self.select

    def __str__(self) -> str:
        names = self.names
        return f"{self.role or 'element'} {names[0][:_NAME]!r}" if names else f"{self.role or 'element'} without a name"


class _Dialog(BaseModel):
    type: str
    message: str = ""


class _InspectedCall(BaseModel):
    name: str
    text: str
    arguments: dict[str, Any] = {}
    targets: list[_Target | None] = []

    @property
    def options(self) -> list[str]:
        options = self.arguments.get("options", [])
        return [options] if isinstance(options, str) else [str(option) for option in cast("list[object]", options)]


class _InspectedPage(BaseModel):
    url: str
    dialog: _Dialog | None = None
    calls: list[_InspectedCall]


def irreversible_acts(inspected: JsonValue) -> list[str]:
    """Return a description of each irreversible act among the calls that the sandbox's browser has inspected.

    Raises ValueError if ``inspected`` is not a result of the browser's command "targets".
    """
    page = _InspectedPage.model_validate(inspected)
    acts: list[str] = []
    dialog, seen = page.dialog, True
    focus: _Target | None = None
    for call in page.calls:
        if dialog is not None:
            act = _dialog_act(call, dialog)
            if call.name == "keyboard_press":
                dialog, seen = None, False
        else:
            if focus is not None and call.name.startswith("keyboard_"):
                call.targets = [focus]
            act = _act(call) if seen else _blind_act(call)
            if call.name in _FOCUSING and call.targets:
                focus = call.targets[-1]
            elif call.name in _KEYS:
                focus = _Target()  # the key may move it
            seen = seen and (call.name in HARMLESS | _SETTING or _only_types(call) or _only_chooses(call))
        if act:
            acts.append(f"{act} on {page.url[:_URL]}")
    return acts


def _dialog_act(call: _InspectedCall, dialog: _Dialog) -> str:
    accepts = call.name == "keyboard_press" and call.arguments.get("key") == "Enter" and dialog.type != "alert"
    return f"accept the dialog {dialog.message[:_NAME]!r}" if accepts else ""


def _blind_act(call: _InspectedCall) -> str:
    """Return the description of a call on a page that earlier calls may have changed."""
    if call.name in HARMLESS | OPENING or _only_types(call):
        return ""
    return f"{call.text[:_NAME]}, whose element is not known before the calls ahead of it have run,"


def _act(call: _InspectedCall) -> str:
    if call.name in HARMLESS | OPENING or _only_chooses(call):
        return ""
    elements = [target for target in call.targets if target is not None]
    if call.name in _TYPING:
        return _key_act(call, elements[0] if elements else None)
    if not elements:
        return ""  # there is no such element, so the call will fail
    target = elements[-1]
    if call.name in _SETTING:
        options = call.options
        chosen = f" to {', '.join(options)!r}" if options else ""
        # An option of a select box in a form waits for the form to be sent; one of an ARIA listbox may act.
        waits = target.form and (target.select or call.name != "select_option")
        risky = not waits and names_irreversible_act([*target.names, *options])
        return f"set {target}{chosen}" if risky else ""
    if call.name in ("drag_and_drop", "mouse_drag_and_drop"):
        risky = any(names_irreversible_act(element.names) for element in elements)
        return f"drag {elements[0]} to {target}" if risky else ""
    return f"click {target}" if _click_is_irreversible(target) else ""


def _click_is_irreversible(target: _Target) -> bool:
    if target.is_field:
        return not target.form and names_irreversible_act(target.names)
    if names_irreversible_act(target.names, link=bool(target.link)) or address_names_irreversible_act(target.link):
        return True
    if target.dialog and names_irreversible_act([target.dialog]) and not dismisses(target.names):
        return True
    if target.link and not target.form:
        return False
    return (target.submits and not asks_for_search(target.query)) or not is_understood(target.names)


def _key_act(call: _InspectedCall, target: _Target | None) -> str:
    key = _key(call)
    if target is None:
        missing = call.name == "press"  # so the call will fail
        return f"press {key} in the page" if key in _SENDING_KEYS and not missing else ""
    if target.is_field:
        sends = key in _SENDING_KEYS and not target.select and not asks_for_search(target.query)
        return f"press {key} in {target}" if sends else ""
    presses = key in _PRESSING_KEYS and _click_is_irreversible(target)
    return f"press {key.replace(' ', 'Space')} in {target}" if presses or key in _DELETING_KEYS else ""


def _only_chooses(call: _InspectedCall) -> bool:
    """Return whether the call chooses files in a file field; on any other element it clicks."""
    return call.name in _UPLOADING and all(target is not None and target.file for target in call.targets)


def _only_types(call: _InspectedCall) -> bool:
    """Return whether the call presses only keys that neither send nor press nor delete anything by themselves."""
    return call.name in _TYPING and _key(call) not in _PRESSING_KEYS | _DELETING_KEYS


def _key(call: _InspectedCall) -> str:
    """Return the pressed key without its modifiers; for a typed text Enter or ""."""
    if call.name == "keyboard_type":
        return "Enter" if _BREAKS & set(str(call.arguments.get("text", ""))) else ""
    key = str(call.arguments.get("key_comb") or call.arguments.get("key") or "")
    last = key if key in ("+", " ") else key.rpartition("+")[2]
    return "Enter" if last in _BREAKS else last
