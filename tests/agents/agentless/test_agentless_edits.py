"""Search/replace edits: what matches exactly once is replaced, and nothing else is ever touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.agentless.edits import SearchReplace, apply_edits, edited_texts, parse_edits
from handiwork.agents.agentless.structure import Span

TEXT = "def half(x):\n    return x / 2\n\n\ndef area(a, b):\n    return a + b\n"
WHOLE = [Span(0, 6)]

lines = st.sampled_from(["a", "b", "", "    a", "x = 1; a", "...", "\ta"])
texts = st.lists(lines, min_size=1, max_size=12).map("\n".join)
blocks = st.lists(lines, max_size=3).map(tuple)
edits = st.lists(st.builds(SearchReplace, st.just("f"), blocks, blocks), max_size=4)


def block(search: str, new: str, heading: str = "") -> str:
    return f"{heading}\n<<<<<<< SEARCH\n{search}\n=======\n{new}\n>>>>>>> REPLACE\n"


@given(texts, edits, st.integers(0, 11), st.integers(0, 11))
def test_lines_outside_the_span_stay(text: str, changes: list[SearchReplace], first: int, size: int) -> None:
    before = text.split("\n")
    span = Span(min(first, len(before) - 1), min(first + size, len(before) - 1))
    after = apply_edits(text, changes, [span]).split("\n")
    assert after[: span.first] == before[: span.first]
    below = before[span.last + 1 :]
    assert after[len(after) - len(below) :] == below


@given(texts, blocks, blocks)
def test_a_block_is_replaced_if_and_only_if_it_stands_there_once(
    text: str, search: tuple[str, ...], new: tuple[str, ...]
) -> None:
    before = text.split("\n")
    starts = [n for n in range(len(before)) if tuple(before[n : n + len(search)]) == search]
    after = apply_edits(text, [SearchReplace("f", search, new)], [Span(0, len(before) - 1)])
    if len(starts) == 1 and any(line.strip() for line in search):
        expected = [*before[: starts[0]], *new, *before[starts[0] + len(search) :]]
        assert after == "\n".join(expected)
    else:
        assert after == text


def test_part_of_a_line_is_no_match() -> None:
    assert apply_edits("x = 1; y = 2\n", [SearchReplace("f", ("y = 2",), ("y = 9",))], [Span(0, 1)]) == "x = 1; y = 2\n"
    assert apply_edits(TEXT, [SearchReplace("f", ("return a + b",), ("return",))], WHOLE) == TEXT


def test_two_matches_are_left_alone_unless_one_of_them_is_outside_of_the_span() -> None:
    edit = SearchReplace("f", ("a",), ("b",))
    assert apply_edits("a\nc\na\n", [edit], [Span(0, 3)]) == "a\nc\na\n"
    assert apply_edits("a\nc\na\n", [edit], [Span(1, 3)]) == "a\nc\nb\n"


def test_of_edits_that_overlap_the_first_is_made_and_others_by_their_place_in_the_file_as_it_was() -> None:
    text = "one\ntwo\nthree\nfour\n"
    changes = [
        SearchReplace("f", ("one",), ("1", "1a", "1b")),
        SearchReplace("f", ("three", "four"), ()),
        SearchReplace("f", ("two", "three"), ("lost",)),
    ]
    assert apply_edits(text, changes, [Span(0, 4)]) == "1\n1a\n1b\ntwo\n"


def test_line_ends_stay() -> None:
    text = TEXT.replace("\n", "\r\n")
    changed = apply_edits(text, [SearchReplace("f", ("    return a + b",), ("    c = a * b", "    return c"))], WHOLE)
    assert changed == text.replace("    return a + b", "    c = a * b\r\n    return c")


def test_blanks_at_the_ends_of_lines_may_be_left_out_and_stay() -> None:
    text = "def f():\n    a = 1  \n    \n\x0c\n    return a\n"
    (edit,) = parse_edits(block("    a = 1\n\n\n    return a", "    a = 1\n\n\n    return a + 1"), ["f"])
    assert apply_edits(text, [edit], [Span(0, 5)]) == "def f():\n    a = 1  \n\n\n    return a + 1\n"
    shorter = SearchReplace("f", ("    a = 1  ",), ("    a = 1",))
    assert apply_edits(text, [shorter], [Span(0, 5)]) == text.replace("1  ", "1")


class TestParse:
    @pytest.mark.parametrize("heading", ["lib/area.py", "### lib/area.py", "`lib/area.py`:", "In /repo/lib/area.py:"])
    def test_the_line_before_names_the_file(self, heading: str) -> None:
        (edit,) = parse_edits(block("a", "b", heading), ["lib/area.py", "lib/other.py"])
        assert edit == ("lib/area.py", ("a",), ("b",))

    def test_a_block_of_no_known_file_and_one_without_an_end_are_none(self) -> None:
        assert parse_edits(block("a", "b", "lib/new.py"), ["lib/area.py", "lib/other.py"]) == []
        assert parse_edits("<<<<<<< SEARCH\na\n=======\nb\n", ["lib/area.py"]) == []
        assert parse_edits("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", ["lib/area.py"]) == []

    def test_a_first_line_of_dots_is_left_out(self) -> None:
        (edit,) = parse_edits(block("...\na", "...\nb\n..."), ["f"])
        assert (edit.search, edit.new) == (("a",), ("b", "..."))

    def test_the_only_file_needs_no_name_and_several_blocks_share_one(self) -> None:
        assert [edit.path for edit in parse_edits(block("a", "b") + block("c", ""), ["f"])] == ["f", "f"]
        assert [e.path for e in parse_edits(block("a", "b", "g") + block("c", "d"), ["f", "g"])] == ["g", "g"]

    @given(st.text("<=>SEARCHPL \nab", max_size=60))
    def test_any_reply_gives_edits_or_none(self, reply: str) -> None:
        for edit in parse_edits(reply, ["f"]):
            assert edit.path == "f"


class TestEditedTexts:
    files = {"a.py": TEXT, "b.js": "f(1);\n"}
    spans = {"a.py": WHOLE, "b.js": [Span(0, 1)]}

    def texts(self, *parts: str) -> dict[str, str]:
        return edited_texts("".join(parts), self.files, self.spans)

    def test_several_files(self) -> None:
        changed = self.texts(block("    return a + b", "    return a * b", "a.py"), block("f(1);", "f(2);", "b.js"))
        assert changed == {"a.py": TEXT.replace("a + b", "a * b"), "b.js": "f(2);\n"}

    def test_a_syntax_error_in_one_file_drops_all(self) -> None:
        assert self.texts(block("    return a + b", "    return (", "a.py"), block("f(1);", "f(2);", "b.js")) == {}

    @pytest.mark.parametrize("more", ["print 'of Python 2'\n", "x = = of a later version\n"])
    def test_code_for_another_version_of_python_is_edited_too(self, more: str) -> None:
        change, right = block("    return a + b", "    return a * b", "a.py"), TEXT.replace("a + b", "a * b")
        assert edited_texts(change, {"a.py": TEXT + more}, self.spans) == {"a.py": right + more}

    def test_a_byte_order_mark_is_no_syntax_error(self) -> None:
        marked = {"a.py": f"\ufeff{TEXT}"}
        (changed,) = edited_texts(block("    return a + b", "    return a * b", "a.py"), marked, self.spans).values()
        assert changed == f"\ufeff{TEXT}".replace("a + b", "a * b")
        assert edited_texts(block("    return a + b", "    return (", "a.py"), marked, self.spans) == {}

    def test_blank_lines_are_no_change(self) -> None:
        assert self.texts(block("def area(a, b):", "\ndef area(a, b):\n", "a.py")) == {}

    def test_an_edit_without_a_match_leaves_the_others(self) -> None:
        changed = self.texts(block("    return a - b", "    return 0", "a.py"), block("f(1);", "f(2);", "b.js"))
        assert changed == {"b.js": "f(2);\n"}
