"""Properties of the skills on random files: searches find all there is, edits change what they say or nothing."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.skills import (
    append_file,
    create_file,
    edit_file,
    edit_file_by_replace,
    find_file,
    goto_line,
    insert_content_at_line,
    open_file,
    parse_audio,
    parse_docx,
    parse_image,
    parse_latex,
    parse_pdf,
    parse_pptx,
    parse_video,
    parse_xlsx,
    scroll_down,
    scroll_up,
    search_dir,
    search_file,
    tools,
)
from handiwork.skills.files import lines_of
from handiwork.skills.tools import SkillError, ripgrep

# To ripgrep a name that ends in a point is never hidden.
NAMES = st.text(st.sampled_from("ab.-é "), min_size=1, max_size=4).filter(lambda name: not name.endswith("."))
BYTES = st.lists(st.sampled_from([b"ab", b"b", b"*", b" ", b"\t", b"\r\n", b"\n", "é".encode(), b"\xff"]), max_size=12)
TREES = st.dictionaries(st.tuples(NAMES, NAMES), BYTES.map(b"".join), max_size=6)
TERMS = st.text(st.sampled_from("ab*.é "), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("properties")


@contextlib.contextmanager
def without_ripgrep() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "_root", None)
        patch.setenv("PATH", "/nowhere")
        ripgrep.cache_clear()
        yield
    ripgrep.cache_clear()


def printed(skill: Callable[..., None], *arguments: object) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        skill(*arguments)
    return output.getvalue()


def visible_files(root: Path) -> list[Path]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return [path for path in files if not any(part.startswith(".") for part in path.relative_to(root).parts)]


@settings(max_examples=40)
@given(tree=TREES, term=TERMS)
def test_the_searches_find_what_is_there(place: Path, tree: dict[tuple[str, str], bytes], term: str) -> None:
    root = place / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for (folder, name), data in tree.items():
        (root / folder).mkdir(exist_ok=True)
        (root / folder / name).write_bytes(data)
    assert ripgrep() is not None
    assert_found(root, term)
    with without_ripgrep():
        assert ripgrep() is None
        assert_found(root, term)


def assert_found(root: Path, term: str) -> None:
    files = visible_files(root)
    lines = [
        (str(path), number)
        for path in files
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1)
        if term.encode() in line
    ]
    output = printed(search_dir, term, str(root))
    found = re.findall(r"^(.*) \(Line (\d+)\): ", output, re.MULTILINE)
    assert sorted((path, int(number)) for path, number in found) == sorted(lines)
    assert (f"[Found {len(lines)} matches" in output) == bool(lines)
    listed = [line for line in printed(find_file, term, str(root)).splitlines() if line.startswith("/")]
    assert listed == sorted(str(path) for path in files if term in path.name)
    for path in files:
        numbers = [number for where, number in lines if where == str(path)]
        shown = re.findall(r"^Line (\d+): ", printed(search_file, term, str(path)), re.MULTILINE)
        assert [int(number) for number in shown] == numbers


@given(data=BYTES.map(b"".join), content=st.text(st.sampled_from("ab \té\n"), max_size=12))
def test_lines_are_added_at_the_end_and_nothing_else_changes(place: Path, data: bytes, content: str) -> None:
    file = place / "append.txt"
    file.write_bytes(data)
    try:
        printed(append_file, str(file), content)
    except SkillError:
        assert file.read_bytes() == data
        assert not content or ("é" in content and b"\xff" in data)
        return
    after, lines = file.read_bytes(), content.encode().removesuffix(b"\n") + b"\n"
    added = lines if not data or data.endswith(b"\n") else b"\n" + lines[:-1]
    assert after.startswith(data)
    assert after[len(data) :].replace(b"\r\n", b"\n") == added


@given(data=BYTES.map(b"".join), steps=st.lists(st.sampled_from("udg"), max_size=4), line=st.integers(1, 12))
def test_every_view_has_the_files_own_lines(place: Path, data: bytes, steps: list[str], line: int) -> None:
    file = place / "view.txt"
    file.write_bytes(data)
    count = max(1, len(lines_of(data)))
    views = [printed(open_file, str(file), min(line, count), 3)]
    for step in steps:
        views.append(
            printed(goto_line, min(line, count)) if step == "g" else printed({"u": scroll_up}.get(step, scroll_down))
        )
    expected = [f"{n}|{text.decode('utf-8', 'backslashreplace')}" for n, text in enumerate(_texts(data), 1)]
    for view in views:
        shown = [text for text in view.split("\n") if re.match(r"\d+\|", text)]
        first = int(shown[0].partition("|")[0]) - 1 if shown else 0
        assert shown == expected[first : first + len(shown)]
        above, below = re.search(r"\((\d+) more lines above", view), re.search(r"\((\d+) more lines below", view)
        hidden = sum(int(match[1]) for match in (above, below) if match)
        assert hidden + len(shown) == len(expected)
    assert file.read_bytes() == data


def _texts(data: bytes) -> list[bytes]:
    return [line.removesuffix(b"\n").rstrip(b"\r") for line in lines_of(data)]


CODE = st.lists(st.sampled_from(["x = 1", "y = x", "    z = 2", "if x:", "def f(:", "print(q)", "(", ")"]), max_size=4)


@settings(max_examples=25)
@given(before=CODE, new=CODE.filter(bool), at=st.integers(0, 4))
def test_an_edit_of_code_is_made_whole_or_refused_whole(
    place: Path, before: list[str], new: list[str], at: int
) -> None:
    file = place / "code.py"
    text = "".join(f"{line}\n" for line in before)
    file.write_text(text)
    wanted = before[:at] + new + before[at:]
    try:
        printed(insert_content_at_line, str(file), min(at, len(before)) + 1, "\n".join(new))
        refusal = ""
    except SkillError as error:
        refusal = str(error)
    edited = not refusal
    assert edited or "The edit would add errors" in refusal
    assert file.read_text() == ("".join(f"{line}\n" for line in wanted) if edited else text)
    if is_code(text):
        assert not edited or is_code(file.read_text())


def is_code(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


EDITS: dict[str, Callable[[str], None]] = {
    "edit_file": lambda path: edit_file(path, 1, 1, "new"),
    "edit_file_by_replace": lambda path: edit_file_by_replace(path, "old", "new"),
    "insert_content_at_line": lambda path: insert_content_at_line(path, 1, "new"),
    "append_file": lambda path: append_file(path, "new"),
}


@pytest.mark.parametrize("name", EDITS)
def test_each_edit_follows_links_and_keeps_them(folder: Path, name: str) -> None:
    (folder / "real").mkdir()
    (folder / "real/a.txt").write_bytes(b"old\r\nend")
    (folder / "one").symlink_to("real/a.txt")
    (folder / "two").symlink_to(folder / "one")
    printed(EDITS[name], "two")
    assert b"new" in (folder / "real/a.txt").read_bytes()
    assert (os.readlink(folder / "one"), os.readlink(folder / "two")) == ("real/a.txt", str(folder / "one"))
    (folder / "three").symlink_to("three")
    (folder / "four").symlink_to("missing")
    for broken in ("three", "four", "real", "missing", "a\0b"):
        with pytest.raises(SkillError):
            EDITS[name](broken)
    for taken, reason in (("three", "dangling"), ("four", "dangling"), ("real", "exists"), ("one", "exists")):
        with pytest.raises(SkillError, match=reason):
            create_file(taken)


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("data", [b"old\0\n", b"old\n" + b"\0" * 9, b"\x7fELF\0old"])
def test_no_edit_touches_a_binary_file(folder: Path, name: str, data: bytes) -> None:
    (folder / "a.bin").write_bytes(data)
    with pytest.raises(SkillError, match="binary"):
        EDITS[name]("a.bin")
    assert (folder / "a.bin").read_bytes() == data


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_each_edit_and_search_takes_a_million_lines(folder: Path, name: str) -> None:
    (folder / "a.txt").write_bytes(b"old\n" + b"x\n" * 1_000_000)
    printed(EDITS[name], "a.txt")
    after = (folder / "a.txt").read_bytes()
    assert after.replace(b"new\n", b"", 1).replace(b"old\n", b"", 1) == b"x\n" * 1_000_000
    assert "[Found 1 matches" in printed(search_dir, "new", str(folder))
    assert "[Found 1 matches" in printed(search_file, "new", "a.txt")
    with pytest.raises(SkillError, match="narrow the search"):
        search_file("x", "a.txt")


@pytest.mark.slow
@settings(max_examples=6)
@given(
    data=st.binary(max_size=60),
    head=st.sampled_from([b"", b"%PDF-1.7\n", b"PK\x03\x04", b"\\begin{", b"\xd0\xcf\x11\xe0"]),
)
def test_no_document_breaks_a_reader(place: Path, data: bytes, head: bytes) -> None:
    file = place / "document"
    file.write_bytes(head + data)
    for read in (parse_pdf, parse_docx, parse_pptx, parse_xlsx, parse_latex):
        refusal = ""
        try:
            printed(read, str(file))
        except SkillError as error:
            refusal = str(error)
        assert "\n" not in refusal
    assert file.read_bytes() == head + data


HEADS = [
    b"",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    b"GIF89a",
    b"RIFF\x24\0\0\0WAVEfmt ",
    b"RIFF\x24\0\0\0WEBPVP8 ",
    b"\0\0\0\x18ftypmp42",
]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(data=st.binary(max_size=60), head=st.sampled_from(HEADS))
def test_no_picture_or_sound_breaks_a_reader(place: Path, data: bytes, head: bytes) -> None:
    """A video is refused here without a look at it: it needs the sandbox's browser."""
    file = place / "media"
    file.write_bytes(head + data)
    asked: list[tuple[bytes, str]] = []

    def ask(prompt: str, content: bytes, media_type: str) -> tuple[str, str]:
        asked.append((content, media_type))
        return "an answer", ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "_ask", ask)
        for read in (parse_image, parse_audio, parse_video):
            try:
                said = printed(read, str(file))
            except SkillError as error:
                said = f"{error}\n"
            assert said.count("\n") == 1
    for content, media_type in asked:
        if media_type.startswith("audio/"):
            assert content == head + data
        else:
            assert content.startswith({"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8"}[media_type])
    assert file.read_bytes() == head + data
