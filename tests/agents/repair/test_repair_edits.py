"""Edits of candidates can be made, and taken back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.repair.edits import applied, edit_between, edits_between

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "  a\n", "\n", "a = b\r\n", "b"]), max_size=8).map("".join)


@given(TEXTS, TEXTS)
def test_an_edit_leads_from_one_text_to_the_other_and_back(before: str, after: str) -> None:
    edit = edit_between("f", before, after)
    if edit is None:
        assert before == after
        return
    assert applied({"f": before}, [edit]) == {"f": after}
    if edit.old:
        assert before.find(edit.old) == before.rfind(edit.old) >= 0
    if edit.new and edit.old:
        assert after.find(edit.new) == after.rfind(edit.new)
        assert after.replace(edit.new, edit.old, 1) == before


def test_only_what_differs_is_edited() -> None:
    (edit,) = edits_between({"a": "1\n2\n3\n", "b": "x\n"}, {"a": "1\n2\n4\n", "b": "x\n"})
    assert (edit.path, edit.old, edit.new) == ("a", "3\n", "4\n")
