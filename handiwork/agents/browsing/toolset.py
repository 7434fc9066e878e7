"""The tools of agents for the web: their descriptions for the model, and the action each call becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from handiwork.agents.browsing.choices import ElementChoice, Kind, offered, read
from handiwork.agents.protocols.action_tools import ActionTool, parameters
from handiwork.events.action import AgentFinishAction, AgentRejectAction, BrowseInteractiveAction, MessageAction
from handiwork.events.base import Action
from handiwork.llm.types import JsonSchema, Tool

SETTLING = 400
"""Milliseconds that a menu, or the suggestions of a box, may take to appear."""
SCREEN = 600
"""Pixels of a scroll on a page that does not tell the height of its window."""
OFFERED = 100
"""Maximum number of elements that a schema enumerates; among more, the model writes the bid."""
WAIT = 30.0
"""Maximum seconds of a wait."""

_SCREEN = re.compile(r"scroll\(0, -?(\d+)\) shows more")
_DIRECTIONS = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
_BID = ("string", "The element's bid, which stands in brackets before it.")
_ONTO = ("string", "The bid of the element to drop it on.")
_PANE = ("string", "The bid of the pane; none for the page.")
_FIELD = ("string", "The element's bid; none for the element that has the focus.")


def _calls(text: str) -> Action:
    return BrowseInteractiveAction(browser_actions=text)


def _on_element(name: str) -> Callable[[dict[str, Any]], Action]:
    return lambda arguments: _calls(f"{name}({_bid(arguments['bid'])!r})")


def _alone(name: str) -> Callable[[dict[str, Any]], Action]:
    return lambda _: _calls(f"{name}()")


def _bid(value: object) -> str:
    """Return the bid in an element's line; a text without brackets is a bid itself."""
    text = str(value).strip()
    return text[1:].partition("]")[0] if text.startswith("[") else text


def _press(arguments: dict[str, Any]) -> Action:
    if arguments.get("bid"):
        return _calls(f"press({_bid(arguments['bid'])!r}, {arguments['key']!r})")
    return _calls(f"keyboard_press({arguments['key']!r})")


def _scroll(screen: int, panes: Mapping[str, tuple[int, int]], arguments: dict[str, Any]) -> Action:
    x, y = _DIRECTIONS[arguments["direction"]]
    bid = _bid(arguments.get("bid") or "")
    across, down = panes.get(bid, (screen, screen))
    over = f"hover({bid!r})\n" if bid else ""
    return _calls(f"{over}scroll({x * across}, {y * down})")


def _dialog(arguments: dict[str, Any]) -> Action:
    if arguments["answer"] == "dismiss":
        return _calls("keyboard_press('Escape')")
    typed = f"keyboard_type({arguments['text']!r})\n" if arguments.get("text") else ""
    return _calls(f"{typed}keyboard_press('Enter')")


def _wait(arguments: dict[str, Any]) -> Action:
    return _calls(f"noop({min(max(float(arguments['seconds']), 0.0), WAIT) * 1000:g})")


def _tool(
    make: Callable[[dict[str, Any]], Action],
    name: str,
    description: str,
    required: Sequence[str] = (),
    body: str | None = None,
    **properties: tuple[str, str] | JsonSchema,
) -> ActionTool:
    return ActionTool(Tool(name, description, parameters(required, **properties)), make, body)


TOOLS: tuple[ActionTool, ...] = (
    _tool(_on_element("click"), "click", "Click an element.", ["bid"], bid=_BID),
    _tool(
        lambda a: _calls(f"fill({_bid(a['bid'])!r}, {str(a['text'])!r})\nnoop({SETTLING})"),
        "fill",
        "Replace the content of a text field. Nothing is sent by it.",
        ["bid", "text"],
        bid=_BID,
        text=("string", "The exact text."),
    ),
    _tool(
        lambda a: _calls(f"select_option({_bid(a['bid'])!r}, {a['option']!r})"),
        "select_option",
        "Choose an option of a select box.",
        ["bid", "option"],
        bid=_BID,
        option=("string", "The option's label."),
    ),
    _tool(_on_element("check"), "check", "Check a checkbox or choose a radio button.", ["bid"], bid=_BID),
    _tool(_on_element("uncheck"), "uncheck", "Uncheck a checkbox.", ["bid"], bid=_BID),
    _tool(
        lambda a: _calls(f"hover({_bid(a['bid'])!r})\nnoop({SETTLING})"),
        "hover",
        "Move the mouse over an element, which may open a menu.",
        ["bid"],
        bid=_BID,
    ),
    _tool(
        _press,
        "press",
        "Press a key, such as Enter, Tab, ArrowDown or Control+a.",
        ["key"],
        key=("string", "The key."),
        bid=_FIELD,
    ),
    _tool(
        partial(_scroll, SCREEN, {}),
        "scroll",
        "Scroll the page by the height of the window, or a pane by its own.",
        ["direction"],
        direction={"type": "string", "enum": list(_DIRECTIONS)},
        bid=_PANE,
    ),
    _tool(
        lambda a: _calls(f"drag_and_drop({_bid(a['bid'])!r}, {_bid(a['target'])!r})"),
        "drag_and_drop",
        "Drag an element onto another one.",
        ["bid", "target"],
        bid=_BID,
        target=_ONTO,
    ),
    _tool(
        lambda a: _calls(f"upload_file({_bid(a['bid'])!r}, {a['path']!r})"),
        "upload_file",
        "Choose a file of the workspace in a file field.",
        ["bid", "path"],
        bid=_BID,
        path=("string", "The file's path in the workspace."),
    ),
    _tool(
        lambda a: _calls(f"goto({a['url']!r})"),
        "goto",
        "Open an address.",
        ["url"],
        url=("string", "The address: http, https, or file for a page of the workspace."),
    ),
    _tool(_alone("go_back"), "go_back", "Go back to the page before."),
    _tool(_alone("go_forward"), "go_forward", "Go forward again after going back."),
    _tool(_alone("new_tab"), "new_tab", "Open a blank tab."),
    _tool(
        lambda a: _calls(f"tab_focus({int(a['index'])})"),
        "tab_focus",
        "Show another tab.",
        ["index"],
        index=("integer", "The tab's number, from 0."),
    ),
    _tool(_alone("tab_close"), "tab_close", "Close the tab that is shown."),
    _tool(
        _dialog,
        "dialog",
        "Answer the dialog that is open. The page stands still until then.",
        ["answer"],
        answer={"type": "string", "enum": ["accept", "dismiss"]},
        text=("string", "What to type into a dialog that asks for a text."),
    ),
    _tool(
        _wait, "wait", "Wait for the page.", ["seconds"], seconds=("number", f"How long, {WAIT:.0f} seconds at most.")
    ),
    _tool(
        lambda a: MessageAction(content=a["question"], wait_for_response=True),
        "ask",
        "Ask the user for what the task and the pages do not say.",
        ["question"],
        body="question",
        question=("string", "The question."),
    ),
    _tool(
        lambda a: AgentFinishAction(outputs={"message": a["message"]}),
        "finish",
        "End the task.",
        ["message"],
        body="message",
        message=("string", "The answer to the user's question, or else what was done."),
    ),
    _tool(
        lambda a: AgentRejectAction(outputs={"reason": a["reason"]}),
        "reject",
        "End a task that cannot or should not be done.",
        ["reason"],
        body="reason",
        reason=("string", "Why."),
    ),
)
"""All tools, for any page."""

_CHOICES: dict[str, dict[str, frozenset[Kind] | None]] = {
    "click": {"bid": None},
    "fill": {"bid": frozenset({"fill"})},
    "select_option": {"bid": frozenset({"select"})},
    "check": {"bid": frozenset({"check"})},
    "uncheck": {"bid": frozenset({"uncheck"})},
    "hover": {"bid": None},
    "press": {"bid": None},
    "drag_and_drop": {"bid": None, "target": None},
    "upload_file": {"bid": frozenset({"click"})},
    "scroll": {"bid": frozenset({"scroll"})},
}
"""The arguments that are elements, by tool, and the kinds of elements that they can be, None for all but panes."""


ON_ELEMENTS = frozenset(_CHOICES) - {"scroll"}
"""Tools that act on an element."""


def tools_on(tree: str, *, enumerated: bool, dialog: bool) -> tuple[ActionTool, ...]:
    """Return the tools for the page with this accessibility tree.

    With ``enumerated``, their schemas list the page's elements, and tools without one are left out; so is `dialog`
    unless a ``dialog`` is open.
    """
    page_elements = offered(read(tree))
    panes = {element.bid: element.step for element in page_elements if any(element.step)}
    height = _SCREEN.search(tree)
    # On a page that stands still, a scroll without a bid moves a pane, and skips none of it.
    screen = int(height[1]) if height else min((down for _, down in panes.values() if down), default=SCREEN)
    scroll = partial(_scroll, screen, panes)
    tools = [replace(tool, make=scroll) if tool.name == "scroll" else tool for tool in TOOLS]
    if not enumerated:
        return tuple(tools)
    bound = [_bound(tool, page_elements) for tool in tools if dialog or tool.name != "dialog"]
    return tuple(tool for tool in bound if tool is not None)


def _bound(tool: ActionTool, page_elements: Sequence[ElementChoice]) -> ActionTool | None:
    """Return the tool with its elements as enumerations; None if the page has none for it."""
    schema: JsonSchema = tool.tool.parameters
    properties: dict[str, Any] = dict(schema["properties"])
    for name, kinds in _CHOICES.get(tool.name, {}).items():
        fitting = [each for each in page_elements if (each.kind != "scroll" if kinds is None else each.kind in kinds)]
        if len(fitting) > OFFERED:
            continue
        if fitting:
            properties[name] = {"enum": [element.label for element in fitting]}
        elif name in schema["required"]:
            return None
        else:
            del properties[name]
    boxes = [element for element in page_elements if element.options]
    if tool.name == "select_option" and not any(box.more_options or any(box.step) for box in boxes):
        options = [option for box in boxes for option in box.options]
        properties["option"] = {"enum": list(dict.fromkeys(options))}
    return replace(tool, tool=Tool(tool.name, tool.tool.description, {**schema, "properties": properties}))
