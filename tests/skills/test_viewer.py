"""The viewer: windows of files of every kind."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.skills import append_file, create_file, goto_line, open_file, scroll_down, scroll_up
from handiwork.skills.files import lines_of
from handiwork.skills.tools import SkillError
from handiwork.skills.viewer import window_text


def write_lines(path: Path, count: int) -> Path:
    path.write_text("".join(f"line {number}\n" for number in range(1, count + 1)))
    return path


def shown(text: str) -> list[int]:
    """Return the numbers of the lines in a window."""
    rows = (row.partition("|") for row in text.splitlines())
    return [int(number) for number, bar, _ in rows if bar and number.isdigit()]


def test_a_short_file_is_shown_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_file(str(write_lines(folder / "a.txt", 3)))
    assert capsys.readouterr().out == (
        f"[File: {folder}/a.txt (3 lines total)]\n(this is the beginning of the file)\n1|line 1\n2|line 2\n3|line 3\n"
        "(this is the end of the file)\n"
    )


def test_the_window_moves_by_100_lines_and_stops_at_both_ends(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(folder / "a.txt", 350)
    open_file("a.txt")
    steps = [scroll_down, scroll_down, scroll_down, scroll_down, scroll_up]
    windows = [shown(capsys.readouterr().out)]
    for step in steps:
        step()
        windows.append(shown(capsys.readouterr().out))
    assert [(window[0], window[-1]) for window in windows] == [
        (1, 100),
        (52, 151),
        (152, 251),
        (251, 350),
        (251, 350),
        (201, 300),
    ]
    goto_line(200)
    assert "(150 more lines above)" in (text := capsys.readouterr().out)
    assert "(100 more lines below)" in text


@pytest.mark.parametrize(("asked", "lines"), [(-5, 1), (1, 1), (300, 300), (10_000, 300)])
def test_a_window_has_1_to_300_lines(folder: Path, capsys: pytest.CaptureFixture[str], asked: int, lines: int) -> None:
    write_lines(folder / "a.txt", 1000)
    open_file("a.txt", 500, asked)
    assert len(shown(capsys.readouterr().out)) == lines


def test_none_stands_for_the_defaults(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(folder / "a.txt", 1000)
    open_file("a.txt", None, None)
    assert shown(capsys.readouterr().out) == list(range(1, 101))


@given(st.integers(0, 400), st.integers(1, 400), st.integers(1, 300))
def test_every_window_has_its_line_and_adds_up(count: int, line: int, window: int) -> None:
    lines = [b"x\n"] * count
    line = min(line, max(1, count))
    numbers = shown(window_text("/a", lines, line, window))
    assert len(numbers) == min(window, count)
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else not count
    assert not numbers or line in numbers


@given(st.binary())
def test_lines_add_up_to_the_file(data: bytes) -> None:
    assert b"".join(lines_of(data)) == data


def test_a_million_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "big.txt").write_bytes(b"x\n" * 1_000_000)
    open_file("big.txt", 999_999)
    assert shown(capsys.readouterr().out)[-1] == 1_000_000


def test_what_is_no_utf8_is_shown_with_escapes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_bytes("caf\u00e9 ☕\r\n".encode() + b"\xff\tend")
    open_file("a.txt")
    assert "1|caf\u00e9 ☕\n2|\\xff\tend\n" in capsys.readouterr().out


def test_what_cannot_be_shown_is_said(folder: Path) -> None:
    (folder / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nowhere")
    write_lines(folder / "a.txt", 3)
    for arguments, words in [
        (("missing.txt",), "No such file"),
        (("binary",), "binary"),
        (("pipe",), "no regular file"),
        (("dangling",), "dangling link: its target nowhere does not exist"),
        ((".",), "is a directory"),
        (("a.txt", 4), "lines 1 to 3"),
        (("a.txt", 0), "lines 1 to 3"),
        (("",), "cannot be the name"),
    ]:
        with pytest.raises(SkillError, match=words):
            open_file(*arguments)


def test_a_new_file_is_empty_and_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_file("new/deep/a.txt")
    assert (folder / "new/deep/a.txt").read_bytes() == b""
    goto_line(1)
    assert "a.txt (0 lines total)" in capsys.readouterr().out
    with pytest.raises(SkillError, match="exists already"):
        create_file("new/deep/a.txt")


def test_a_dangling_link_is_named_by_every_skill(folder: Path) -> None:
    (folder / "dangling").symlink_to("nowhere")
    for skill in (open_file, create_file, partial(append_file, content="x")):
        with pytest.raises(SkillError, match="dangling link: its target nowhere does not exist"):
            skill("dangling")
    assert not (folder / "nowhere").exists()
