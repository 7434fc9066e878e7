"""Edits: exactly what is asked changes, whatever surrounds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.skills import append_file, edit_file, edit_file_by_replace, insert_content_at_line
from handiwork.skills.files import lines_of
from handiwork.skills.tools import SkillError

TEXT = st.text(st.sampled_from("ab \t\u00e9\n"), max_size=12)
FILE = st.lists(
    st.sampled_from([b"a", b"b", b" ", b"\t", b"\r\n", b"\n", "\u00e9".encode(), b"\xff"]), max_size=30
).map(b"".join)


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "a.txt"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"x = 1; y = 2\n", "y = 2", "y = 9", b"x = 1; y = 9\n"),
        (b"def f(a):\n    return a\n", "return", "yield", b"def f(a):\n    yield a\n"),
        (b"a\r\nb\r\n\tc", "b\r\n\tc", "d", b"a\r\nd"),
        (b"a\r\nb\r\nc", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc"),
        (b"a\r\nb\r\nc", "b", "x\ny", b"a\r\nx\r\ny\r\nc"),
        (b"a\nb\r\nc", "b", "x\ny", b"a\nx\ny\r\nc"),
        (b"\xff\xfe a \xff", "a", "b", b"\xff\xfe b \xff"),
        (b"a\n\n\nb", "\n\n\n", "\n", b"a\nb"),
    ],
)
def test_only_the_matched_text_is_replaced(file: Path, before: bytes, old: str, new: str, after: bytes) -> None:
    file.write_bytes(before)
    edit_file_by_replace("a.txt", old, new)
    assert file.read_bytes() == after


def test_several_matches_are_listed_and_none_is_edited(file: Path) -> None:
    file.write_text("one = 1\ntwo = 1\n\nthree = 1; four = 1\n")
    with pytest.raises(SkillError) as error:
        edit_file_by_replace("a.txt", "= 1", "= 2")
    assert "occurs 4 times" in str(error.value)
    assert "1|one = 1\n2|two = 1\n4|three = 1; four = 1\n4|three = 1; four = 1\n" in str(error.value)
    assert file.read_text() == "one = 1\ntwo = 1\n\nthree = 1; four = 1\n"


def test_a_text_that_differs_in_spaces_is_shown_and_not_guessed(file: Path) -> None:
    file.write_text("if a:\n\treturn 1\n")
    with pytest.raises(SkillError, match=r"differ from it only in spaces:\n1\|if a:\n2\|\treturn 1"):
        edit_file_by_replace("a.txt", "if a:\n    return 1", "pass")
    with pytest.raises(SkillError, match="does not occur"):
        edit_file_by_replace("a.txt", "nothing of it", "pass")
    for old, new in (("", "x"), ("if", "if")):
        with pytest.raises(SkillError, match=r"empty|the same"):
            edit_file_by_replace("a.txt", old, new)


@given(FILE, st.integers(0, 30), st.integers(1, 30), TEXT)
def test_bytes_outside_the_match_are_untouched(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, length: int, new: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "replace.txt"
    file.write_bytes(data)
    old = data[start : start + length]
    try:
        text = old.decode()
    except UnicodeDecodeError:
        return
    if not text or text == new:
        return
    times = sum(data.startswith(old, position) for position in range(len(data)))
    if times == 1:
        try:
            edit_file_by_replace(str(file), text, new)
        except SkillError:
            assert b"\xff" in data
            assert "\u00e9" in new
            return
        after = file.read_bytes()
        assert after.startswith(data[:start])
        assert after.endswith(data[start + len(old) :])
        written = after[start : len(after) - len(data) + start + len(old)]
        assert written.replace(b"\r\n", b"\n") == new.encode().replace(b"\r\n", b"\n")
    else:
        with pytest.raises(SkillError, match="occurs"):
            edit_file_by_replace(str(file), text, new)
        assert file.read_bytes() == data


@given(FILE, st.integers(1, 12), st.integers(0, 5), TEXT)
def test_lines_outside_the_range_are_untouched(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, more: int, content: str
) -> None:
    file, lines = tmp_path_factory.getbasetemp() / "range.txt", lines_of(data)
    file.write_bytes(data)
    try:
        edit_file(str(file), start, start + more, content)
    except SkillError:
        assert file.read_bytes() == data
        return
    after = file.read_bytes()
    head, tail = b"".join(lines[: start - 1]), b"".join(lines[start + more :])
    assert after.startswith(head)
    assert after.endswith(tail)
    middle = after[len(head) : len(after) - len(tail)]
    assert middle.replace(b"\r\n", b"\n").rstrip(b"\n") == content.encode().rstrip(b"\n")
    assert not tail or not middle or middle.endswith(b"\n")


@given(FILE, st.integers(1, 12), TEXT)
def test_inserted_lines_leave_all_others_untouched(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, line: int, content: str
) -> None:
    file, lines = tmp_path_factory.getbasetemp() / "insert.txt", lines_of(data)
    file.write_bytes(data)
    try:
        insert_content_at_line(str(file), line, content)
    except SkillError:
        assert file.read_bytes() == data
        return
    head, tail = b"".join(lines[: line - 1]), b"".join(lines[line - 1 :])
    assert file.read_bytes().startswith(head)
    assert file.read_bytes().endswith(tail)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"new\n"),
        (b"a\n", b"a\nnew\n"),
        (b"a", b"a\nnew"),
        (b"a\r\n", b"a\r\nnew\r\n"),
        (b"a\r\nb", b"a\r\nb\r\nnew"),
    ],
)
def test_lines_are_added_at_the_end_in_the_files_own_way(file: Path, before: bytes, after: bytes) -> None:
    file.write_bytes(before)
    append_file("a.txt", "new")
    assert file.read_bytes() == after
    file.write_bytes(before)
    insert_content_at_line("a.txt", len(lines_of(before)) + 1, "new\n")
    assert file.read_bytes() == after


def test_a_range_is_replaced_deleted_and_checked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"one\r\ntwo\r\nthree")
    edit_file("a.txt", 2, 3, "2\n3\n4")
    assert file.read_bytes() == b"one\r\n2\r\n3\r\n4"
    assert "2|2\n3|3\n4|4\n(this is the end" in capsys.readouterr().out
    edit_file("a.txt", 1, 2, "")
    assert file.read_bytes() == b"3\r\n4"
    for start, end in ((0, 1), (2, 1), (1, 3), (True, 1)):
        with pytest.raises(SkillError, match="has 2 lines"):
            edit_file("a.txt", start, end, "x")
    with pytest.raises(SkillError, match="nothing to edit"):
        edit_file("a.txt", 1, 1, "3")


@pytest.mark.parametrize("before", [b"a\n", b"", b"a\n\xef\xbb\xbfb\n"])
def test_a_byte_order_mark_stays_first(file: Path, before: bytes) -> None:
    mark = b"\xef\xbb\xbf"
    file.write_bytes(mark + before)
    insert_content_at_line("a.txt", 1, "new")
    assert file.read_bytes() == mark + b"new\n" + before
    edit_file("a.txt", 1, 1, "first")
    assert file.read_bytes() == mark + b"first\n" + before


def test_no_letters_of_utf_8_get_into_a_file_in_another_encoding(file: Path) -> None:
    before = "caf\u00e9\nprice\n".encode("latin-1")
    file.write_bytes(before)
    for edit in (
        lambda: edit_file("a.txt", 2, 2, "th\u00e9"),
        lambda: edit_file_by_replace("a.txt", "price", "th\u00e9"),
        lambda: insert_content_at_line("a.txt", 1, "th\u00e9"),
        lambda: append_file("a.txt", "th\u00e9"),
    ):
        with pytest.raises(SkillError, match="is not UTF-8, and the new text is not ASCII"):
            edit()
    assert file.read_bytes() == before
    edit_file("a.txt", 1, 1, "caf\u00e9")
    assert file.read_bytes() == "caf\u00e9\nprice\n".encode()


def test_a_link_stays_a_link_and_the_mode_stays(folder: Path, file: Path) -> None:
    file.write_text("a\n")
    file.chmod(0o751)
    (folder / "link.txt").symlink_to("a.txt")
    append_file("link.txt", "b")
    assert (folder / "link.txt").is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("a\nb\n", 0o751)
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "link.txt"]


@pytest.mark.slow
def test_a_million_lines_change_in_one(file: Path) -> None:
    file.write_bytes(b"x\n" * 999_999 + b"y\n")
    edit_file_by_replace("a.txt", "y", "z")
    edit_file("a.txt", 1, 1, "w")
    assert file.read_bytes() == b"w\n" + b"x\n" * 999_998 + b"z\n"


def test_a_binary_file_and_one_that_is_missing_are_refused(file: Path) -> None:
    with pytest.raises(SkillError, match="No such file"):
        append_file("a.txt", "x")
    file.write_bytes(b"a\0b")
    with pytest.raises(SkillError, match="binary"):
        append_file("a.txt", "x")


@pytest.mark.skipif(not os.getuid(), reason="root may write everywhere; test_notebooks runs this in a sandbox")
def test_a_file_without_permission_is_refused(file: Path) -> None:
    file.write_text("a\n")
    file.chmod(0o444)
    with pytest.raises(SkillError, match="read-only"):
        append_file("a.txt", "x")
