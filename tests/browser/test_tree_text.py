"""How the tree of a page becomes text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handiwork.sandbox.inside.browser.observation.tree import PageNode, from_accessibility, text


def described(role: str, name: str = "", **properties: object) -> dict[str, object]:
    return {
        "role": {"value": role},
        "name": {"value": name},
        "properties": [{"name": key, "value": {"value": value}} for key, value in properties.items()],
    }


def test_a_line_has_bid_role_name_value_and_notes():
    node = PageNode("textbox", "Name", "a5", "Ada", ["focused", "required"])
    assert text(node) == "[a5] textbox 'Name' value='Ada', focused, required"


def test_children_are_one_tab_further_in_and_empty_wrappers_are_not_there():
    link = PageNode("link", "Home", "3")
    root = PageNode(
        "RootWebArea", "T", children=[PageNode("generic", bid="1", children=[PageNode("generic", children=[link])])]
    )
    assert text(root) == "RootWebArea 'T'\n\t[3] link 'Home'"


def test_a_wrapper_that_one_can_click_stays():
    wrapper = PageNode("generic", bid="7", children=[PageNode("StaticText", "Pick me")])
    wrapper.clickable()
    assert text(wrapper) == "[7] generic '', clickable\n\tStaticText 'Pick me'"


def test_words_that_the_name_has_already_are_not_repeated():
    assert (
        text(PageNode("button", "Buy now", "4", children=[PageNode("StaticText", "Buy now")])) == "[4] button 'Buy now'"
    )


def test_a_text_that_is_a_part_of_the_pages_or_a_containers_name_stays():
    seats = PageNode(
        "region", "Room 12", "1", children=[PageNode("StaticText", "2"), PageNode("StaticText", "Room 12")]
    )
    page = PageNode("RootWebArea", "Cart: 3 items", children=[PageNode("StaticText", "3"), seats])
    assert text(page) == "RootWebArea 'Cart: 3 items'\n\tStaticText '3'\n\t[1] region 'Room 12'\n\t\tStaticText '2'"


def test_long_names_are_cut_and_long_text_is_not():
    assert len(text(PageNode("link", "x" * 1000, "1"))) < 250
    assert "x" * 1000 in text(PageNode("StaticText", "x" * 1000))
    assert "x" * 1000 in text(PageNode("cell", "x" * 1000, children=[PageNode("StaticText", "x" * 1000)]))


def test_states_are_said_in_words():
    assert from_accessibility(described("checkbox", "A", checked="false"), "1").notes == ["unchecked"]
    assert from_accessibility(described("checkbox", "A", checked="mixed"), "1").notes == ["partly checked"]
    assert from_accessibility(described("button", "A", expanded=False), "1").notes == ["collapsed"]
    assert from_accessibility(described("heading", "A", level=2), "1").notes == ["level=2"]
    for kind in ("plaintext", "richtext"):
        assert from_accessibility(described("generic", editable=kind, focusable=True), "1").notes == ["editable"]
    assert from_accessibility(described("searchbox", editable="plaintext", focusable=True), "1").notes == []
    assert from_accessibility(described("link", "A", url="http://x/"), "1").notes == []
    assert from_accessibility(described("link", "", url="http://x/"), "1").notes == ["url='http://x/'"]


@given(st.text(), st.text())
def test_nothing_a_page_says_makes_a_line_of_its_own(name: str, value: str):
    node = from_accessibility({**described("textbox", name), "value": {"value": value}}, "1")
    assert text(PageNode("RootWebArea", name, children=[node, PageNode("StaticText", name)])).count("\n") <= 2
    assert len(text(node).splitlines()) == 1
