"""Calls of the browser's actions are found in whatever words an agent puts around them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.sandbox.inside.browser.actions.calls import (
    LONGEST,
    MOST,
    CallError,
    PrimitiveCall,
    parse_calls,
    signature,
)
from handiwork.sandbox.inside.browser.actions.primitives import ACTIONS


def parse(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in parse_calls(text, ACTIONS)]


def refusal(text: str) -> str:
    with pytest.raises(CallError) as error:
        parse_calls(text, ACTIONS)
    return str(error.value)


def test_the_actions_are_those_of_browsergym() -> None:
    written = {name: signature(name, action) for name, action in ACTIONS.items()}
    assert {name: usage for name, usage in written.items() if "button" not in usage} == {
        "noop": "noop(wait_ms: number = 1000)",
        "send_msg_to_user": "send_msg_to_user(text: text)",
        "report_infeasible": "report_infeasible(reason: text)",
        "goto": "goto(url: text)",
        "go_back": "go_back()",
        "go_forward": "go_forward()",
        "new_tab": "new_tab()",
        "tab_close": "tab_close()",
        "tab_focus": "tab_focus(index: whole number)",
        "hover": "hover(bid: text)",
        "press": "press(bid: text, key_comb: text)",
        "focus": "focus(bid: text)",
        "clear": "clear(bid: text)",
        "fill": "fill(bid: text, value: text, enable_autocomplete_menu: True or False = False)",
        "check": "check(bid: text)",
        "uncheck": "uncheck(bid: text)",
        "select_option": "select_option(bid: text, options: text or list of text)",
        "drag_and_drop": "drag_and_drop(from_bid: text, to_bid: text)",
        "upload_file": "upload_file(bid: text, file: text or list of text)",
        "scroll": "scroll(delta_x: number, delta_y: number)",
        "scroll_at": "scroll_at(x: number, y: number, dx: number, dy: number)",
        "mouse_move": "mouse_move(x: number, y: number)",
        "mouse_drag_and_drop": "mouse_drag_and_drop(from_x: number, from_y: number, to_x: number, to_y: number)",
        "mouse_upload_file": "mouse_upload_file(x: number, y: number, file: text or list of text)",
        "keyboard_down": "keyboard_down(key: text)",
        "keyboard_up": "keyboard_up(key: text)",
        "keyboard_press": "keyboard_press(key: text)",
        "keyboard_type": "keyboard_type(text: text)",
        "keyboard_insert_text": "keyboard_insert_text(text: text)",
    }
    clicks = {name for name, usage in written.items() if "button" in usage}
    assert clicks == {"click", "dblclick", "mouse_down", "mouse_up", "mouse_click", "mouse_dblclick"}


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("click('12')", [("click", {"bid": "12"})]),
        ("click(12)", [("click", {"bid": "12"})]),
        ("click ( '12' )", [("click", {"bid": "12"})]),
        ("I will open it:\n\nclick('a5')\n\nand see.", [("click", {"bid": "a5"})]),
        ("In summary: ```click('a5')```", [("click", {"bid": "a5"})]),
        ("- `noop()`\n- `scroll(0, -200.5)`", [("noop", {}), ("scroll", {"delta_x": 0, "delta_y": -200.5})]),
        ("1. noop()\n2. go_back();", [("noop", {}), ("go_back", {})]),
        ("```python\nclick('1')\n```\nThat is click('2') undone.", [("click", {"bid": "1"})]),
        ("fill('3', \"it's (a) \\\"test\\\"\")", [("fill", {"bid": "3", "value": 'it\'s (a) "test"'})]),
        ("fill('3', '''two\nlines''')", [("fill", {"bid": "3", "value": "two\nlines"})]),
        ("fill(bid='3', value='x', enable_autocomplete_menu=True)",
         [("fill", {"bid": "3", "value": "x", "enable_autocomplete_menu": True})]),
        ("fill('3', 'click(\\'4\\')')", [("fill", {"bid": "3", "value": "click('4')"})]),
        ("send_msg_to_user('```click(\"4\")```')", [("send_msg_to_user", {"text": '```click("4")```'})]),
        ("select_option('a1', ['x', 'y'])", [("select_option", {"bid": "a1", "options": ["x", "y"]})]),
        ("click('1', modifiers=['Shift'])", [("click", {"bid": "1", "modifiers": ["Shift"]})]),
        ("I could click (the button) or click('7').", [("click", {"bid": "7"})]),
        ("I use click(bid), that is: click('7')", [("click", {"bid": "7"})]),
        ("It says print('x'), so click('7')", [("click", {"bid": "7"})]),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert parse(text) == calls


@pytest.mark.parametrize(
    "text", ["", "Hello.", "see click (the button)", "page.click('3')", "click", "so print('x') it is"]
)
def test_words_without_a_call_are_told_what_is_expected(text: str) -> None:
    assert refusal(text).startswith("no action was found: write calls such as click('12')")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('x')", "there is no action 'print'. The actions are check, clear, click, "),
        ("click('12'", "this call cannot be read: click('12'."),
        ("fill('3', it is)", "this call cannot be read: fill('3', it is)."),
        ("click(open('/etc/passwd').read())", "this call cannot be read"),
        ("click(__import__('os').system('id'))", "this call cannot be read"),
        ("click(*['1'])", "this call cannot be read"),
        ("fill('3')", "fill('3'): missing a required argument: 'value'. The action is fill(bid: text, value: text, "),
        ("go_back(1)", "go_back(1): too many positional arguments. The action is go_back()"),
        (
            "click('1', 'primary')",
            "click('1', 'primary'): button must be 'left' or 'middle' or 'right'. The action is click(",
        ),
        ("click('1', strength=3)", "got an unexpected keyword argument 'strength'"),
        ("scroll('far', 0)", "delta_x must be number"),
        ("scroll(True, 0)", "delta_x must be number"),
        ("scroll(1e999, 0)", "delta_x must be number"),
        ("tab_focus(1.5)", "index must be whole number"),
        ("fill('1', None)", "value must be text"),
        ("fill('1', 'x', 'yes')", "enable_autocomplete_menu must be True or False"),
        ("select_option('1', [1])", "options must be text or list of text"),
        ("keyboard_type('\\ud800')", "text must be text"),
        ("noop()\n" * (MOST + 1), f"write {MOST} at most"),
        ("x" * (LONGEST + 1), f"{LONGEST} are read at most"),
    ],
)
def test_wrong_calls_are_refused_with_the_right_way(text: str, why: str) -> None:
    assert why in refusal(text)


def test_one_wrong_call_among_others_means_that_none_is_run() -> None:
    assert "this call cannot be read: fill('3', 'x" in refusal("fill('3', 'x)\nclick('4')")


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "number": st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6),
    "whole number": st.integers(-(10**6), 10**6),
    "True or False": st.booleans(),
}
USED = ("fill", "scroll", "tab_focus", "send_msg_to_user", "drag_and_drop", "noop")
AROUND = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="([{`'\"\\")).map(
    lambda words: f"{words} "
)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, dict[str, Any], str]:
    """A call's name, its arguments and how it is written."""
    name = draw(st.sampled_from(USED))
    parts = signature(name, ACTIONS[name])[len(name) + 1 : -1].split(", ")
    kinds = {part.partition(": ")[0]: part.partition(": ")[2].partition(" = ")[0] for part in parts}
    arguments = {key: draw(VALUES[kind]) for key, kind in kinds.items()}
    named = draw(st.integers(0, len(arguments)))
    texts = [
        f"{key}={value!r}" if place >= named else repr(value) for place, (key, value) in enumerate(arguments.items())
    ]
    return name, arguments, f"{name}({', '.join(texts)})"


@given(
    st.lists(st.tuples(AROUND, written()), min_size=1, max_size=5),
    AROUND,
    st.sampled_from(["", "```\n", "```python\n"]),
)
def test_what_is_written_is_read_back(
    calls: list[tuple[str, tuple[str, dict[str, Any], str]]], end: str, fence: str
) -> None:
    inner = "\n".join(f"{'' if fence else words}{call[2]}" for words, call in calls)
    text = f"{calls[0][0]}\n{fence}{inner}\n```\n{end}" if fence else f"{inner} {end}"
    assert parse(text) == [call[:2] for _, call in calls]


HARD = (
    "click('",
    "fill('1', ",
    "\\x",
    "\\N{",
    "lambda: ",
    "1e9",
    "f'",
    "\ud800",
    "9" * 5000,
    "-" * 300,
    "(" * 300,
    "é",
)
PIECES = st.sampled_from([*ACTIONS, *"()[]{}'\"\\\n\0 ,=*-:#`", "'''", '"""', "```", *HARD])


@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join))
def test_whatever_is_written_is_read_or_refused_in_words(text: str) -> None:
    found: list[PrimitiveCall] = []
    with suppress(CallError):
        found = parse_calls(text, ACTIONS)
    assert all(call.name in ACTIONS and call.text in text for call in found)


@pytest.mark.parametrize(
    "text",
    ["click(" * 10_000, "click('" * 10_000, "click(" + "[" * 90_000, "click(" + "-" * 90_000 + "1)", "(" * LONGEST],
)
def test_hostile_nesting_is_refused(text: str) -> None:
    assert refusal(text)
