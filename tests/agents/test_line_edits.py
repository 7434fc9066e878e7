"""Edits of a chosen line: exact, reindented, and touching nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.codeact.lines import choices, replacement

CODE = "def f(x):\n    if x:\n        return 1\n    return 1\n"


def edit(text: str, shown: str, new: str) -> str:
    old, put = replacement(text, choices(text)[shown], new)
    assert text.find(old) == text.rfind(old) >= 0
    return text.replace(old, put)


def test_a_line_that_recurs_is_offered_with_the_one_after_it() -> None:
    assert "return 1" not in choices(CODE)
    assert "return 1\nreturn 1" in choices(CODE)


@pytest.mark.parametrize(
    "new",
    ["if x > 0:\n    y = 2", "    if x > 0:\n        y = 2", "\nif x > 0:\n    y = 2\n"],
    ids=["at the margin", "as in the file", "with empty lines around"],
)
def test_the_new_lines_take_the_indentation_of_the_old(new: str) -> None:
    assert edit(CODE, "if x:", new).splitlines()[1:3] == ["    if x > 0:", "        y = 2"]


def test_a_first_line_at_the_margin_with_the_rest_as_in_the_file() -> None:
    assert edit("class A:\n    b = 1\n", "b = 1", "b = 1\n    c = 2") == "class A:\n    b = 1\n    c = 2\n"


def test_nothing_in_its_place_removes_the_line() -> None:
    assert edit(CODE, "if x:", " ") == "def f(x):\n        return 1\n    return 1\n"


def test_a_choice_that_overlaps_the_end_of_another_line() -> None:
    assert edit("a = b\nb\nb\na\n", "b\nb", "c") == "a = b\nc\na\n"


@given(st.lists(st.sampled_from(["a", "  a", "b", "", "    b = 1", "a = b", "}"]), min_size=1, max_size=12), st.data())
def test_any_choice_replaces_its_lines_and_no_others(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines) + "\n"
    offered = choices(text)
    if not offered:
        return
    shown = data.draw(st.sampled_from(sorted(offered)))
    choice = offered[shown]
    assert [line.strip() for line in lines[choice.first : choice.last + 1]] == shown.split("\n")
    after = edit(text, shown, "NEW").splitlines()
    assert list(after[: choice.first]) == lines[: choice.first]
    assert after[choice.first].strip() == "NEW"
    assert after[choice.first + 1 :] == lines[choice.last + 1 :]
