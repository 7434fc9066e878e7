"""Searches: ripgrep and Python find the same, within the same limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handiwork.skills import find_file, open_file, search_dir, search_file, tools
from handiwork.skills.tools import SkillError, ripgrep

Capture = pytest.CaptureFixture[str]


@pytest.fixture(params=["ripgrep", "python"])
def way(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "python":
        monkeypatch.setattr(tools, "_root", None)
        monkeypatch.setenv("PATH", "/nowhere")
    ripgrep.cache_clear()
    assert (ripgrep() is None) == (request.param == "python")
    yield request.param
    ripgrep.cache_clear()


@pytest.fixture
def tree(folder: Path) -> Path:
    for path, text in {
        "b.txt": "nothing\n  a.* needle here\r\n",
        "a/deep/c.py": "needle = 1\n" + "x" * 1000 + "needle\n",
        "a/caf\u00e9 name.txt": "needle \u2615",
        ".hidden/d.txt": "needle",
        ".e.txt": "needle",
        "node_modules/x/f.js": "needle",
        "build/g.txt": "needle",
        ".gitignore": "build\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    (folder / "binary.bin").write_bytes(b"needle\0")
    (folder / "link.txt").symlink_to("b.txt")
    (folder / "loop").symlink_to(".")
    return folder


def test_a_directory_is_searched(tree: Path, way: str, capsys: Capture) -> None:
    search_dir("needle")
    assert capsys.readouterr().out == (
        f'[Found 5 matches for "needle" in {tree}]\n'
        f"{tree}/a/caf\u00e9 name.txt (Line 1): needle \u2615\n"
        f"{tree}/a/deep/c.py (Line 1): needle = 1\n"
        f"{tree}/a/deep/c.py (Line 2): {'x' * 300}...\n"
        f"{tree}/b.txt (Line 2): a.* needle here\n"
        f"{tree}/build/g.txt (Line 1): needle\n"
        f'[End of matches for "needle" in {tree}]\n'
    )
    search_dir("a.*", "./")
    assert f"{tree}/b.txt (Line 2)" in (text := capsys.readouterr().out)
    assert "Found 1 " in text
    search_dir("-e nothing", "a")
    assert capsys.readouterr().out == f'No matches found for "-e nothing" in {tree}/a\n'


def test_too_many_files_ask_for_a_narrower_search(folder: Path, way: str) -> None:
    for number in range(101):
        (folder / f"{number}.txt").write_text("needle\n" * 3)
    with pytest.raises(SkillError, match=r"More than 100 files .* narrow the search"):
        search_dir("needle")


def test_many_matches_of_one_file_are_counted(folder: Path, way: str, capsys: Capture) -> None:
    (folder / "a.txt").write_text("needle\n" * 150)
    search_dir("needle")
    text = capsys.readouterr().out
    assert "[Found 150 matches" in text
    assert text.endswith("[50 more matches are left out]\n")
    with pytest.raises(SkillError, match="More than 100 lines"):
        search_file("needle", "a.txt")


def test_files_are_found_by_a_part_of_their_name(tree: Path, way: str, capsys: Capture) -> None:
    find_file("name")
    assert capsys.readouterr().out.splitlines()[1:-1] == [f"{tree}/a/caf\u00e9 name.txt"]
    find_file(".txt")
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()[1:-1]] == [
        "caf\u00e9 name.txt",
        "b.txt",
        "g.txt",
    ]
    find_file("*.txt", "a")
    assert capsys.readouterr().out == f'[No matches found for "*.txt" in {tree}/a]\n'


def test_a_file_is_searched_the_open_one_if_none_is_named(tree: Path, capsys: Capture) -> None:
    open_file("b.txt")
    capsys.readouterr()
    search_file("needle")
    assert capsys.readouterr().out == (
        f'[Found 1 matches for "needle" in {tree}/b.txt]\nLine 2: a.* needle here\n'
        f'[End of matches for "needle" in {tree}/b.txt]\n'
    )
    search_file("nowhere", "b.txt")
    assert "No matches" in capsys.readouterr().out


def test_what_cannot_be_searched_is_said(tree: Path, way: str) -> None:
    for arguments, words in [(("x", "b.txt"), "no directory"), (("", "."), "one line"), (("a\nb", "."), "one line")]:
        with pytest.raises(SkillError, match=words):
            search_dir(*arguments)
