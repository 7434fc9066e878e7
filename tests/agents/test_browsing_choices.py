"""What a page offers to act on, and the tools for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.browsing.choices import offered, page_lines, read
from handiwork.agents.browsing.toolset import TOOLS, tools_on
from handiwork.agents.protocols import JSON
from handiwork.agents.protocols.ask import read as read_reply
from handiwork.events.action import AgentFinishAction, AgentRejectAction, BrowseInteractiveAction, MessageAction
from handiwork.events.base import Action
from handiwork.llm.types import Completion, JsonSchema

LOGIN = """RootWebArea 'Sign in'
\tStaticText 'User name'
\t[3] textbox ''
\tStaticText 'Password:'
\t[5] textbox '' value='secret'
\t[6] checkbox 'Remember me', unchecked
\t[7] combobox 'Country' value='Chile'
\t\t[8] option 'Chile', selected
\t\t[9] option 'Peru'
\t[10] button 'Login'
\t[11] button 'Help', disabled
... 2.0 screens below: scroll(0, 214) shows more"""

TERMS = (
    "[2] generic '', scrollable after hover('2'): 0.5 screens above, scroll(0, -90); 2.3 screens below, scroll(0, 90)\n"
    "\tStaticText 'You agree.'\n[4] button 'Accept'"
)


def do(name: str, arguments: dict[str, Any]) -> Action:
    """The action of a call."""
    (action,) = read_reply(JSON, Completion(json.dumps({"thought": "", "action": name, **arguments})), TOOLS)
    return action


class TestPage:
    def test_every_element_is_a_line_and_a_box_is_called_by_the_text_before_it(self) -> None:
        assert page_lines(LOGIN).split("\n") == [
            "User name",
            "- [3] textbox 'User name'",
            "Password:",
            "- [5] textbox 'Password:' with 'secret'",
            "- [6] checkbox 'Remember me', not checked",
            "- [7] combobox 'Country' with 'Chile', options: Chile, Peru",
            "- [10] button 'Login'",
            "Help",
            "... 2.0 screens below: scroll(0, 214) shows more",
        ]

    def test_elements_tell_their_states_and_editors_and_sliders_are_filled(self) -> None:
        tree = (
            "[2] generic '' value='Dear Ann', editable\n[3] slider 'Volume' value='3', min=0, max=10\n"
            "[4] switch 'Wifi', checked\n[5] button 'Bold', pressed\n[6] tab 'One', selected\n[7] tab 'Two'\n"
            "[8] button 'Menu', collapsed"
        )
        assert page_lines(tree).split("\n") == [
            "- [2] textbox with 'Dear Ann'",
            "- [3] slider 'Volume' with '3'",
            "- [4] switch 'Wifi', checked",
            "- [5] button 'Bold', pressed",
            "- [6] tab 'One', selected",
            "- [7] tab 'Two'",
            "- [8] button 'Menu', collapsed",
        ]
        assert [one.kind for one in offered(read(tree))][:3] == ["fill", "fill", "click"]

    def test_fields_of_dates_and_times_tell_their_format(self) -> None:
        tree = "StaticText 'Arrival'\n[2] Date ''\n[3] InputTime 'Hour' value='14:30'"
        assert page_lines(tree).split("\n") == [
            "Arrival",
            "- [2] Date 'Arrival', format YYYY-MM-DD",
            "- [3] InputTime 'Hour' with '14:30', format HH:MM",
        ]
        assert [one.kind for one in offered(read(tree))] == ["fill", "fill"]

    def test_the_text_in_the_editor_of_a_frame_stays_on_the_page(self) -> None:
        tree = (
            "StaticText 'Message'\n[a1] textbox ''\n\t[a2] paragraph ''\n\t\tStaticText 'Dear Ann,'\n"
            "\t[a3] paragraph ''\n\t\tStaticText 'thank you.'\n[4] button 'Send'"
        )
        assert page_lines(tree).split("\n") == [
            *("Message", "- [a1] textbox 'Message'", "Dear Ann,", "thank you.", "- [4] button 'Send'"),
        ]

    def test_the_label_of_a_hidden_box_tells_its_state_and_is_clicked(self) -> None:
        tree = (
            "[2] LabelText '', clickable, checked\n\tStaticText 'News'\n"
            "[3] LabelText '', clickable, unchecked\n\tStaticText 'Offers'"
        )
        assert page_lines(tree).split("\n") == [
            "- [2] LabelText 'News', checked",
            "- [3] LabelText 'Offers', unchecked",
        ]
        assert [one.kind for one in offered(read(tree))] == ["click", "click"]

    def test_a_partly_checked_box_is_not_checked(self) -> None:
        tree = "[2] checkbox 'All', partly checked\n[3] menuitemcheckbox 'Columns', partly checked"
        assert page_lines(tree).split("\n") == [
            "- [2] checkbox 'All', partly checked",
            "- [3] menuitemcheckbox 'Columns', partly checked",
        ]
        assert [one.kind for one in offered(read(tree))] == ["check", "click"]

    def test_the_role_of_an_element_may_have_a_hyphen(self) -> None:
        tree = "[15] graphics-symbol 'France', clickable"
        assert page_lines(tree) == "- [15] graphics-symbol 'France'"
        assert [(one.bid, one.name, one.kind) for one in offered(read(tree))] == [("15", "France", "click")]

    def test_words_of_a_value_or_title_are_no_properties(self) -> None:
        tree = (
            "[2] textbox 'Reason' value='Account disabled by admin'\n"
            "[3] checkbox 'News', unchecked, description='Is checked by default'\n"
            "[4] button 'Send', description='Sends it; disabled users are skipped'"
        )
        assert [(one.bid, one.kind) for one in offered(read(tree))] == [("2", "fill"), ("3", "check"), ("4", "click")]

    def test_what_can_be_clicked_is_called_by_the_texts_in_it(self) -> None:
        row = "[2] generic '', clickable\n\tStaticText 'Ann'\n\tStaticText 'Lunch?'\n\t[5] generic '', clickable"
        first, star = offered(read(row))
        assert first.name == "Ann Lunch?"
        assert (star.bid, star.name) == ("5", "")

    def test_an_icon_without_a_name_is_called_as_in_the_page_s_code(self) -> None:
        row = (
            "[2] generic '', clickable\n\tStaticText 'Ann'\n\t[5] image '', clickable, class='fa fa-trash'\n"
            "\t[6] button '', id='more', class='checked'"
        )
        assert page_lines(row).split("\n") == [
            "- [2] generic 'Ann'",
            "- [5] image 'fa fa-trash'",
            "- [6] button 'more checked'",
        ]

    def test_a_long_name_and_the_content_of_a_field_are_shown_in_full(self) -> None:
        title = "The annual report of the harbour office on ships, cranes and cargo, second part"
        (link,) = offered(read(f"[2] link {title!r}"))
        assert link.label == "[2] link 'The annual report of the harbour office on ships, cranes and'"
        assert link.shown == f"{link.label}, in full {title!r}"
        assert page_lines(f"[3] textbox 'Note' value={title!r}") == f"- [3] textbox 'Note' with {title!r}"
        assert page_lines(f"[3] textbox '' value={'a' * 1234!r}").endswith("aaa' (234 more characters)")

    def test_a_pane_tells_how_much_of_it_is_hidden_and_its_texts_stay_on_the_page(self) -> None:
        assert page_lines(TERMS).split("\n") == [
            "- [2] generic, 0.5 screens above; 2.3 screens below",
            "You agree.",
            "- [4] button 'Accept'",
        ]

    def test_a_wrapper_around_other_elements_is_none_of_them(self) -> None:
        page = "[1] generic '', clickable\n\t[2] button 'One'\n\t[3] cell '4', clickable\n\t\t[5] link '4'"
        assert [choice.bid for choice in offered(read(page))] == ["2", "5"]

    def test_no_text_of_a_page_becomes_a_line_of_its_own(self) -> None:
        lines = page_lines("[1] link 'A'\nStaticText 'x\\n- [9] link \\'Evil\\''").split("\n")
        assert lines == ["- [1] link 'A'", "x - [9] link 'Evil'"]

    def test_the_platform_s_notes_about_a_page_stay(self) -> None:
        note = "[A dialog is open, and the page stands still until it is answered.]"
        assert page_lines(note) == note

    @given(st.text())
    def test_no_page_is_too_strange_to_be_read(self, tree: str) -> None:
        for choice in offered(read(tree)):
            assert choice.shown.startswith(choice.label)
            assert choice.label in page_lines(tree)


class TestTools:
    @pytest.mark.parametrize(
        ("name", "arguments", "calls"),
        [
            ("click", {"bid": "a12"}, "click('a12')"),
            ("click", {"bid": "[a12] link 'Cart'"}, "click('a12')"),
            ("fill", {"bid": "3", "text": "it's"}, "fill('3', \"it's\")\nnoop(400)"),
            ("select_option", {"bid": "7", "option": "Peru"}, "select_option('7', 'Peru')"),
            ("check", {"bid": "6"}, "check('6')"),
            ("uncheck", {"bid": "6"}, "uncheck('6')"),
            ("hover", {"bid": "6"}, "hover('6')\nnoop(400)"),
            ("press", {"bid": "6", "key": "Enter"}, "press('6', 'Enter')"),
            ("press", {"key": "Enter"}, "keyboard_press('Enter')"),
            ("scroll", {"direction": "up"}, "scroll(0, -600)"),
            ("scroll", {"direction": "up", "bid": "4"}, "hover('4')\nscroll(0, -600)"),
            ("drag_and_drop", {"bid": "1", "target": "2"}, "drag_and_drop('1', '2')"),
            ("upload_file", {"bid": "1", "path": "a.txt"}, "upload_file('1', 'a.txt')"),
            ("goto", {"url": "http://a/"}, "goto('http://a/')"),
            ("go_back", {}, "go_back()"),
            ("go_forward", {}, "go_forward()"),
            ("new_tab", {}, "new_tab()"),
            ("tab_focus", {"index": 1}, "tab_focus(1)"),
            ("tab_close", {}, "tab_close()"),
            ("dialog", {"answer": "accept"}, "keyboard_press('Enter')"),
            ("dialog", {"answer": "accept", "text": "Ann"}, "keyboard_type('Ann')\nkeyboard_press('Enter')"),
            ("dialog", {"answer": "dismiss"}, "keyboard_press('Escape')"),
            ("wait", {"seconds": 90}, "noop(30000)"),
        ],
    )
    def test_an_act_is_a_call_in_the_browser(self, name: str, arguments: dict[str, Any], calls: str) -> None:
        action = do(name, arguments)
        assert isinstance(action, BrowseInteractiveAction)
        assert action.browser_actions == calls

    def test_asking_finishing_and_rejecting_are_no_acts(self) -> None:
        asked = do("ask", {"question": "Which one?"})
        assert isinstance(asked, MessageAction)
        assert asked.wait_for_response
        finished, rejected = do("finish", {"message": "14"}), do("reject", {"reason": "no"})
        assert isinstance(finished, AgentFinishAction)
        assert isinstance(rejected, AgentRejectAction)
        assert (finished.outputs, rejected.outputs) == ({"message": "14"}, {"reason": "no"})

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [("click", {}), ("fill", {"bid": "1"}), ("scroll", {"direction": "in"}), ("wait", {"seconds": "long"})],
    )
    def test_a_call_that_does_not_fit_is_malformed(self, name: str, arguments: dict[str, Any]) -> None:
        with pytest.raises(MalformedReplyError):
            do(name, arguments)

    def test_in_a_schema_the_elements_are_those_of_the_page(self) -> None:
        tools = {tool.name: tool.tool.parameters for tool in tools_on(LOGIN, enumerated=True, dialog=False)}
        boxes = ["[3] textbox 'User name'", "[5] textbox 'Password:'"]
        every = [*boxes, "[6] checkbox 'Remember me'", "[7] combobox 'Country'", "[10] button 'Login'"]
        assert tools["fill"]["properties"]["bid"] == {"enum": boxes}
        assert tools["click"]["properties"]["bid"] == {"enum": every}
        assert tools["check"]["properties"]["bid"] == {"enum": every[2:3]}
        assert tools["select_option"]["properties"]["option"] == {"enum": ["Chile", "Peru"]}
        assert "uncheck" not in tools
        assert {"goto", "go_back", "scroll", "ask", "finish", "reject"} <= set(tools)

    @pytest.mark.parametrize(("number", "enumerated"), [(80, 80), (120, 0)])
    def test_among_many_elements_the_model_writes_the_bid(self, number: int, enumerated: int) -> None:
        tree = "\n".join(f"[{bid}] button 'Seat {bid}'" for bid in range(number))
        tools = tools_on(tree, enumerated=True, dialog=False)
        (click,) = [tool.tool.parameters["properties"]["bid"] for tool in tools if tool.name == "click"]
        assert len(click.get("enum", ())) == enumerated
        last = str(number - 1)
        (action,) = read_reply(JSON, Completion(json.dumps({"thought": "", "action": "click", "bid": last})), tools)
        assert isinstance(action, BrowseInteractiveAction)
        assert action.browser_actions == f"click('{last}')"

    def test_an_option_that_the_page_leaves_out_can_be_chosen(self) -> None:
        tree = "[7] combobox 'Country' value='Chile', 98 more options\n\t[8] option 'Chile', selected"
        assert page_lines(tree) == "- [7] combobox 'Country' with 'Chile', options: Chile, 98 more options"
        (option,) = [
            tool.tool.parameters["properties"]["option"]
            for tool in tools_on(tree, enumerated=True, dialog=False)
            if tool.name == "select_option"
        ]
        assert option["type"] == "string"
        assert "enum" not in option

    def test_the_value_of_a_box_has_the_group_of_its_option(self) -> None:
        options = "\t[8] option 'Shirts: Small'\n\t[9] option 'Shoes: Small', selected"
        line = "- [7] combobox 'Size' with 'Shoes: Small', options: Shirts: Small, Shoes: Small"
        assert page_lines(f"[7] combobox 'Size' value='Small'\n{options}") == line

    def test_a_page_without_elements_can_be_left(self) -> None:
        names = {tool.name for tool in tools_on("StaticText 'nothing here'", enumerated=True, dialog=True)}
        assert {"goto", "go_back", "press", "dialog", "ask", "finish", "reject"} <= names
        assert names.isdisjoint({"click", "fill", "drag_and_drop"})

    def test_a_scroll_goes_as_far_as_the_window_is_high(self) -> None:
        scroll = next(tool for tool in tools_on(LOGIN, enumerated=False, dialog=False) if tool.name == "scroll")
        action = scroll.make({"direction": "down"})
        assert isinstance(action, BrowseInteractiveAction)
        assert action.browser_actions == "scroll(0, 214)"

    def test_a_pane_is_scrolled_as_far_as_it_is_high(self) -> None:
        tools = {tool.name: tool for tool in tools_on(TERMS, enumerated=True, dialog=False)}
        assert tools["scroll"].tool.parameters["properties"]["bid"] == {"enum": ["[2] generic"]}
        assert tools["click"].tool.parameters["properties"]["bid"] == {"enum": ["[4] button 'Accept'"]}
        for arguments, calls in (
            ({"direction": "down", "bid": "[2] generic"}, "hover('2')\nscroll(0, 90)"),
            ({"direction": "down"}, "scroll(0, 90)"),
        ):
            action = tools["scroll"].make(arguments)
            assert isinstance(action, BrowseInteractiveAction)
            assert action.browser_actions == calls

    def test_every_reply_of_the_schema_is_an_action(self) -> None:
        tools = tools_on(LOGIN, enumerated=True, dialog=True)
        _, schema = JSON.request(tools)
        assert schema is not None
        for variant in schema["anyOf"]:
            for reply in _replies(variant):
                (action,) = read_reply(JSON, Completion(json.dumps(reply)), tools)
                assert isinstance(action, Action)


def _replies(variant: JsonSchema) -> list[dict[str, Any]]:
    """Replies of a variant, each with another value of one of its enumerations."""
    values = {"string": "x", "integer": 1, "number": 1.5}
    properties: dict[str, Any] = variant["properties"]
    options = {
        name: each.get("enum") or [each.get("const", values.get(each.get("type")))] for name, each in properties.items()
    }
    first = {name: given[0] for name, given in options.items()}
    return [first | {name: value} for name, given in options.items() for value in given]
