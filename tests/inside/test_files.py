"""Reading, writing and editing files by actions."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.sandbox.inside.errors import ActionError
from handiwork.sandbox.inside.files.edit import deleted_lines, deleted_passages, edit_file
from tests.inside.inside_client import Client


async def test_a_file_is_read_by_lines(client: Client) -> None:
    (client.workspace / "f").write_bytes(b"one\r\ntwo\nthree")
    whole = await client.execute("FileReadAction", path="f")
    assert (whole["content"], whole["lines"], whole["end"]) == ("one\r\ntwo\nthree", 3, 3)
    part = await client.execute("FileReadAction", path="f", start=2, end=2)
    assert (part["content"], part["start"], part["end"]) == ("two\n", 2, 2)
    assert (await client.execute("FileReadAction", path="f", start=9))["error_id"] == "bad_range"


async def test_paths_start_from_the_directory_of_the_shell(client: Client) -> None:
    await client.run("mkdir d; cd d")
    written = await client.execute("FileWriteAction", path="x/y", content="z")
    assert (written["type"], written["created"]) == ("FileWriteObservation", True)
    assert (client.workspace / "d/x/y").read_text() == "z"


async def test_a_write_tells_which_lines_of_the_file_it_deleted(client: Client) -> None:
    (client.workspace / "f").write_text("one\ntwo\ntwo\nthree\n")
    written = await client.execute("FileWriteAction", path="f", content="two\nfour\none\n")
    assert (written["deleted_text"], written["deleted"], written["lines"]) == ("two\nthree\n", 2, 4)
    new = await client.execute("FileWriteAction", path="g", content="x\n")
    assert (new["deleted_text"], new["deleted"], new["lines"]) == ("", 0, 0)
    (client.workspace / "h").write_text("first\n" + "x" * 8_000 + "\n")
    cut = await client.execute("FileWriteAction", path="h", content="")
    assert (cut["deleted_text"], cut["deleted"]) == ("first\n", 2)


@given(st.lists(st.sampled_from(["a\n", "b\n", "\n"])), st.lists(st.sampled_from(["a\n", "b\n", "c"])))
def test_deleted_lines_are_those_that_the_new_text_has_less_often(before: list[str], after: list[str]) -> None:
    deleted, lines = deleted_lines("".join(before).encode(), "".join(after).encode())
    assert Counter(deleted) == Counter(split(before)) - Counter(split(after))
    assert lines == len(split(before))


def split(text: list[str]) -> list[bytes]:
    return "".join(text).encode().splitlines(keepends=True)


async def test_a_huge_file_is_bounded(client: Client) -> None:
    (client.workspace / "f").write_bytes(b"0123456789abcde\n" * 1_000_000)
    read = await client.execute("FileReadAction", path="f", head=16, tail=16)
    assert (read["content"], read["tail"], read["size"]) == ("0123456789abcde\n",) * 2 + (16_000_000,)
    assert read["lines"] == 1_000_000
    assert len((await client.http.get(f"/spool/{read['spool']}")).content) == 16_000_000


async def test_what_cannot_be_read_says_why(client: Client) -> None:
    (client.workspace / "binary").write_bytes(b"a\xff\n")
    os.mkfifo(client.workspace / "pipe")
    expected = {"binary": "not_text", "missing": "not_found", ".": "is_directory", "pipe": "not_regular"}
    for path, error_id in expected.items():
        assert (await client.execute("FileReadAction", path=path))["error_id"] == error_id
    assert (await client.execute("FileWriteAction", path="a\0b", content=""))["error_id"] == "not_found"
    assert (await client.execute("UnknownAction", query="x"))["error_id"] == "unsupported"


async def test_writing_keeps_mode_and_link(client: Client) -> None:
    script = client.workspace / "script"
    script.write_text("old")
    script.chmod(0o755)
    (client.workspace / "link").symlink_to("script")
    written = await client.execute("FileWriteAction", path="link", content="new\0\u20ac")
    assert not written["created"]
    assert script.read_text() == "new\0\u20ac"
    assert script.stat().st_mode & 0o777 == 0o755
    assert (client.workspace / "link").is_symlink()
    assert sorted(os.listdir(client.workspace)) == ["link", "script"]


async def test_writing_keeps_line_ends_and_byte_order_mark(client: Client) -> None:
    for before, content, after in (
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"a\r\n", "b\r\nc\n", b"b\r\nc\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
    ):
        (client.workspace / "f").write_bytes(before)
        await client.execute("FileWriteAction", path="f", content=content)
        assert (client.workspace / "f").read_bytes() == after
    (client.workspace / "f").write_bytes(b"a\r\nb\r\n")
    written = await client.execute("FileWriteAction", path="f", content="a\nc\n")
    assert written["deleted"] == 1


async def test_an_edit_answers_with_a_diff(client: Client) -> None:
    (client.workspace / "f").write_bytes(b"\xef\xbb\xbfa\r\nx = 1; y = 2\r\nbad \xff\r\nend")
    edited = await client.execute("FileEditAction", path="f", old="y = 2", new="y = 9")
    assert (client.workspace / "f").read_bytes() == b"\xef\xbb\xbfa\r\nx = 1; y = 9\r\nbad \xff\r\nend"
    assert edited["line"] == 2
    assert edited["content"].splitlines()[2:] == [
        "@@ -1,4 +1,4 @@",
        " \ufeffa",
        "-x = 1; y = 2",
        "+x = 1; y = 9",
        " bad \\xff",
        " end",
        "\\ No newline at end of file",
    ]


async def test_an_edit_writes_no_letters_of_utf_8_into_a_file_in_another_encoding(client: Client) -> None:
    before = "caf\u00e9 = 1\nprice = 2\n".encode("latin-1")
    (client.workspace / "f").write_bytes(before)
    refused = await client.execute("FileEditAction", path="f", old="price", new="pr\u00e9")
    assert refused["error_id"] == "not_text"
    assert (client.workspace / "f").read_bytes() == before
    await client.execute("FileEditAction", path="f", old="price = 2", new="price = 3")
    assert (client.workspace / "f").read_bytes() == before.replace(b"2", b"3")


async def test_texts_with_line_feeds_edit_a_file_with_cr_lf(client: Client) -> None:
    (client.workspace / "f").write_bytes(b"a\r\nb\r\nc\r\n")
    await client.execute("FileEditAction", path="f", old="a\nb\n", new="a\nx\ny\n")
    await client.execute("FileEditAction", path="f", old="c", new="c\nd")
    await client.execute("FileEditAction", path="f", old="x\r\n", new="x\r\nz\r\n")
    assert (client.workspace / "f").read_bytes() == b"a\r\nx\r\nz\r\ny\r\nc\r\nd\r\n"


async def test_a_file_with_a_long_name_of_wide_characters_is_edited(client: Client) -> None:
    name = "\u6587" * 84
    (client.workspace / name).write_text("a\n")
    await client.execute("FileEditAction", path=name, old="a", new="b")
    assert (client.workspace / name).read_text() == "b\n"


async def test_an_edit_that_does_not_fit_says_what_would(client: Client) -> None:
    (client.workspace / "f").write_text("def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n")
    missing = await client.execute("FileEditAction", path="f", old="    return a * b", new="x")
    assert missing["error_id"] == "not_found"
    assert "2|    return a + b" in missing["content"] or "5|    return a - b" in missing["content"]
    twice = await client.execute("FileEditAction", path="f", old="return a", new="x")
    assert twice["error_id"] == "not_unique"
    assert "lines 2, 5" in twice["content"]
    for old, new in (("", "x"), ("def", "def")):
        assert (await client.execute("FileEditAction", path="f", old=old, new=new))["error_id"] == "bad_edit"


text = st.text(alphabet="ab\n\r\u00e9\u20ac", max_size=12)


def _is_utf8(data: bytes) -> bool:
    return data == data.decode(errors="ignore").encode()


@given(before=st.binary(max_size=20), old=text, new=text, after=st.binary(max_size=20))
def test_an_edit_changes_exactly_the_one_occurrence_or_nothing(before: bytes, old: str, new: str, after: bytes) -> None:
    data = before + old.encode() + after
    wanted = old.encode()
    occurrences = sum(data.startswith(wanted, place) for place in range(len(data)))
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.write_bytes(data)
        spoils = old.isascii() and not new.isascii() and not _is_utf8(data)  # UTF-8 letters in another encoding
        if old and old != new and occurrences == 1 and not spoils:
            edit = edit_file(str(path), "f", old, new)
            has_crlf = data.partition(b"\n")[0].endswith(b"\r") and b"\n" in data
            if has_crlf and b"\n" not in wanted.replace(b"\r\n", b""):
                new = new.replace("\r\n", "\n").replace("\n", "\r\n")
            assert path.read_bytes() == before + new.encode() + after
            assert edit.diff.startswith("--- f\n+++ f\n@@ -")
        else:
            with pytest.raises(ActionError):
                edit_file(str(path), "f", old, new)
            assert path.read_bytes() == data


def test_a_deleted_passage_has_the_ends_of_its_comments_and_blocks() -> None:
    price = b"/**\n * The price.\n */\nfunction price() {\n  return 1;\n}\n"
    name = b"/**\n * The name.\n */\nfunction name() {\n  return 2;\n}\n"
    assert b"".join(deleted_passages(price + b"\n" + name, name)) == price + b"\n"
    assert deleted_passages(b"a\n}\n}\n", b"a\n}\n") == [b"}\n"]
    assert deleted_passages(name, name) == []
