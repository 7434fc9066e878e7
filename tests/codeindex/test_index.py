"""The index follows its files: what has changed is read again and nothing else, and hostile files harm nothing."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.codeindex.blocks import Block
from handiwork.codeindex.files import LARGEST, SourceTree
from handiwork.codeindex.index import CodeIndex, Refreshed
from handiwork.codeindex.source import blocks_of
from handiwork.codeindex.workers import ParserProcess, UnreadableFileError, map_with_workers
from tests.codeindex.sources import LANGUAGES

pytestmark = pytest.mark.slow

LONG_AGO = 1_600_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree of three files that were written long ago."""
    folder = tmp_path / "tree"
    for path in ("a.py", "pkg/b.py", "pkg/c.md"):
        write(folder, path, f"# {path}\ndef {path[-4]}_function(): pass\n")
    return folder


def write(folder: Path, path: str, text: str | bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(folder / path, (LONG_AGO, LONG_AGO))


def everything(index: CodeIndex) -> set[tuple[str, Block, str]]:
    return {(hit.file_path, hit.block, hit.code) for hit in index.search("file_path: *", 10_000).hits}


def refresh(index: CodeIndex, root: Path) -> Refreshed:
    return index.refresh(SourceTree.of_directory(root))


def test_only_files_whose_content_has_changed_are_read_again(root: Path, tmp_path: Path) -> None:
    index = CodeIndex(str(root), tmp_path / "cache")
    assert refresh(index, root) == Refreshed(read=3)
    assert refresh(index, root) == Refreshed()
    (root / "a.py").touch()  # other times, the same content
    assert refresh(index, root) == Refreshed()
    write(root, "a.py", "def renamed(): pass\n")
    write(root, "pkg/d.py", "x = 1\n")
    (root / "pkg/b.py").unlink()
    assert refresh(index, root) == Refreshed(read=2, removed=1)
    assert {hit.file_path for hit in index.search("renamed").hits} == {"a.py"}
    assert index.search("type: FUNCTION AND file_path: b.py").total == 0
    assert index.files() == 3


def test_another_process_finds_the_index_in_the_cache_and_not_in_the_project(root: Path, tmp_path: Path) -> None:
    before = sorted(root.rglob("*"))
    refresh(CodeIndex(str(root), tmp_path / "cache"), root)
    assert sorted(root.rglob("*")) == before
    index = CodeIndex(str(root), tmp_path / "cache")
    assert index.exists
    assert refresh(index, root) == Refreshed()
    assert index.counts()["FUNCTION"] == 2
    assert index.search("b_function").total == 1


def test_two_indexes_of_one_tree_share_what_each_reads(root: Path, tmp_path: Path) -> None:
    one, other = (CodeIndex(str(root), tmp_path / "cache") for _ in range(2))
    threads = [threading.Thread(target=refresh, args=(index, root)) for index in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert everything(one) == everything(other)
    assert len(everything(one)) == 3
    write(root, "a.py", "def again(): pass\n")
    refresh(one, root)
    assert refresh(other, root) == Refreshed()
    assert other.search("again").total == 1


def test_an_index_that_begins_with_another_reads_what_differs(root: Path, tmp_path: Path) -> None:
    shared = CodeIndex(str(root), tmp_path / "cache")
    refresh(shared, root)
    copy = shutil.copytree(root, tmp_path / "copy")
    write(copy, "a.py", "def changed(): pass\n")
    own = CodeIndex(str(copy), tmp_path / "cache")
    own.start_from(shared)
    assert refresh(own, copy) == Refreshed(read=1)
    assert own.search("changed").total == 1
    assert own.search("b_function").total == 1
    assert shared.search("changed").total == 0
    assert shared.search("a_function").total == 1
    assert refresh(shared, root) == Refreshed()


@pytest.mark.parametrize("damage", ["files", "documents", "both"])
def test_a_damaged_index_is_made_anew(root: Path, tmp_path: Path, damage: str) -> None:
    index = CodeIndex(str(root), tmp_path / "cache")
    refresh(index, root)
    if damage != "documents":
        next(index.folder.glob("files-*.json")).write_text("[")
    if damage != "files":
        (index.folder / "tantivy/meta.json").write_text("{")
    index = CodeIndex(str(root), tmp_path / "cache")
    assert refresh(index, root) == Refreshed(read=3)
    assert len(everything(index)) == 3


def test_a_refresh_that_is_stopped_keeps_what_it_has_read(root: Path, tmp_path: Path) -> None:
    index, stop = CodeIndex(str(root), tmp_path / "cache"), threading.Event()
    stop.set()
    first = index.refresh(SourceTree.of_directory(root), stop).read
    assert 0 < first < 3
    assert index.files() == first
    assert refresh(index, root).read == 3 - first


def test_indexes_of_trees_that_are_gone_are_removed(root: Path, tmp_path: Path) -> None:
    gone = CodeIndex(str(root), tmp_path / "cache")
    refresh(gone, root)
    other = shutil.copytree(root, tmp_path / "other")
    shutil.rmtree(root)
    refresh(CodeIndex(str(other), tmp_path / "cache"), other)
    assert not gone.exists


def test_what_git_ignores_and_what_tools_generate_is_left_out(root: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    write(root, ".gitignore", "build/\n*_pb2.py\n")
    for path in ("build/x.py", "y_pb2.py", "node_modules/m/z.js", ".venv/lib/q.py", "pkg/__pycache__/r.py", "kept.py"):
        write(root, path, "x = 1\n")
    write(root, "excluded.py", "# index: false\nx = 1\n")
    index = CodeIndex(str(root), tmp_path / "cache")
    refresh(index, root)
    assert {path for path, _, _ in everything(index)} == {"a.py", "pkg/b.py", "pkg/c.md", "kept.py"}
    write(root, "pkg/y_pb2.py", "x = 1\n")
    part = CodeIndex(str(root / "pkg"), tmp_path / "cache")
    refresh(part, root / "pkg")
    assert {path for path, _, _ in everything(part)} == {"b.py", "c.md"}


def test_files_are_in_the_language_of_their_names(root: Path, tmp_path: Path) -> None:
    for path in ("a.inl", "a.tpp", "a.cu"):
        write(root, path, "struct Named { };\n")
    for path in ("a.rake", "a.gemspec", "Rakefile"):
        write(root, path, "class Named\nend\n")
    write(root, "a.phtml", "<?php\nclass Named { }\n")
    index = CodeIndex(str(root), tmp_path / "cache")
    refresh(index, root)
    assert index.search("type: CLASS AND name: Named").total == 7


def test_one_file_is_a_tree(root: Path, tmp_path: Path) -> None:
    index = CodeIndex(str(root / "a.py"), tmp_path / "cache")
    assert index.refresh(SourceTree.of_file(root / "a.py")) == Refreshed(read=1)
    assert {hit.file_path for hit in index.search(f"file_path: {root}/a.py").hits} == {"a.py"}


def test_hostile_files_are_left_out_or_read_as_far_as_they_go(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("stolen = 1\n")
    (root / "link.py").symlink_to(secret)
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    write(root, "binary.py", b"x = 1\0\xff")
    write(root, "latin.py", "name = 'Grün'  # straße\n".encode("latin-1"))
    write(root, "utf16.cs", "\ufeffclass Sixteen { }".encode("utf-16-le"))
    write(root, "deep.py", "(" * 90_000)
    write(root, "deep.js", "[" * 90_000)
    write(root, "deep.rb", "module A\n" * 5_000)
    write(root, "line.js", "var minified = 1;" + "f(x);" * 12_000)
    write(root, "large.py", "x = 1\n" * (LARGEST // 6 + 1))
    write(root, "many.py", "f()\n" * 12_000)
    write(root, "/".join(["d"] * 60) + "/nested.py", "x = 1\n")
    write(root, "bad\udcff.py", "def odd_name(): pass\n")
    index = CodeIndex(str(root), tmp_path / "cache")
    refresh(index, root)
    assert index.problems()["binary.py"] == "it is binary"
    assert index.problems()["large.py"] == "it has more than 1,000,000 bytes"
    assert index.cut_files() == ["line.js", "many.py"]
    assert index.search("stolen").total == 0
    assert index.search("file_path: link.py OR file_path: pipe.py OR file_path: large.py").total == 0
    assert index.search("file_path: nested.py").total == 0
    assert index.search("straße AND Grün").total == 1
    assert index.search("type: CLASS AND Sixteen").total == 1
    assert index.search("minified").total >= 1
    assert index.search("file_path: many.py").total == 10_000
    assert index.search("name: b_function").total == 1
    assert "odd_name" not in {hit.block.name for hit in index.search("odd_name").hits}
    again = CodeIndex(str(root), tmp_path / "cache")
    assert refresh(again, root) == Refreshed()
    assert again.problems() == index.problems()
    assert again.cut_files() == ["line.js", "many.py"]


def test_a_file_that_takes_too_long_or_whose_reader_dies_is_given_up() -> None:
    with (
        ParserProcess(["python"], seconds=0.01) as worker,
        pytest.raises(UnreadableFileError, match=r"more than 0\.01 s"),
    ):
        worker.blocks("python", "x = 1\n" * 100_000)
    with ParserProcess(["python"]) as worker:
        assert [one.block.type for one in worker.blocks("python", "x = 1")] == ["ASSIGNMENT"]
        worker.close()
        assert [one.block.type for one in worker.blocks("python", "import x")] == ["IMPORT"]


def test_a_confined_reader_knows_the_names_of_characters() -> None:
    source = 'größe = 1\ndef bullet():\n    """Doc."""\n    return "\\N{BULLET}"\n'
    with ParserProcess(["python"]) as worker:
        blocks = [one.block for one in worker.blocks("python", source)]
    assert blocks == [Block("ASSIGNMENT", 1, 1, "größe"), Block("FUNCTION", 2, 4, "bullet", "def bullet()", "Doc.")]


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    def fail(_: ParserProcess, number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError, match="three"):
        list(map_with_workers(fail, range(1_000), [], 2))


PROBE = """
import os, socket, sys
from handiwork.codeindex.worker import confine
confine()
for name, attempt in {
    "open": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "write": lambda: os.open("/tmp/x", os.O_WRONLY | os.O_CREAT),
    "list": lambda: os.listdir("/"),
    "socket": lambda: socket.socket(socket.AF_UNIX),
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), 0),
}.items():
    try:
        attempt()
    except OSError:
        continue
    os.write(1, name.encode() + b"\\n")
os.write(1, b"end")
"""


def test_the_process_that_parses_can_reach_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "end", done.stderr


@given(st.sampled_from([*LANGUAGES, "python", "markdown", "latex"]), st.data())
@settings(max_examples=150)
def test_any_text_has_blocks_within_its_lines(language: str, data: st.DataObject) -> None:
    source = LANGUAGES.get(language, ("# a\ndef f():\n    pass\nclass A(B):\n    x = 1\n", []))[0]
    pieces = st.one_of(st.text(max_size=20), st.sampled_from(source.split("\n")), st.sampled_from("{}()[]\"'`#\n\\<>;"))
    text = "\n".join(data.draw(st.lists(pieces, max_size=30))).replace("\r", "")
    for block in blocks_of(language, text):
        assert 1 <= block.first <= block.last <= text.count("\n") + 1


PIECES = [
    ("import a{n}", "IMPORT", ""),
    ("VALUE{n} = [\n    1,\n]", "ASSIGNMENT", "VALUE{n}"),
    ("@decorated(\n    1\n)\ndef f{n}(\n    x,\n):\n    return '''\n\n'''", "FUNCTION", "f{n}"),
    ("class A{n}:\n    pass", "CLASS", "A{n}"),
    ("if x:\n    def inner{n}(): pass\nelse:\n    y = 1", "CONDITIONAL", ""),
    ("with x:\n    pass", "OTHER", ""),
]


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 3)), min_size=1, max_size=12))
def test_the_lines_of_python_blocks_are_those_of_their_statements(
    pieces: list[tuple[tuple[str, str, str], int]],
) -> None:
    lines: list[str] = []
    expected: list[tuple[str, str, str]] = []
    for number, ((source, kind, name), blank) in enumerate(pieces):
        lines += ["" if number % 2 else "# a comment"] * blank
        text = source.replace("{n}", str(number))
        lines += text.split("\n")
        expected.append((kind, name.replace("{n}", str(number)), text))
    blocks = blocks_of("python", "\n".join(lines))
    assert [(b.type, b.name, "\n".join(lines[b.first - 1 : b.last])) for b in blocks] == expected


@pytest.mark.parametrize("seed", range(4))
def test_after_any_edits_the_index_is_as_one_made_from_scratch(seed: int, tmp_path: Path) -> None:
    chance, root = random.Random(seed), tmp_path / "tree"
    root.mkdir()
    index = CodeIndex(str(root), tmp_path / "cache")
    paths = [f"{folder}{name}" for folder in ("", "p/", "p/q/") for name in ("a.py", "b.py", "c.go", "d.md")]
    for number in range(5):
        for path in chance.sample(paths, chance.randint(1, 6)):
            if chance.random() < 0.3 and (root / path).exists():
                (root / path).unlink()
                continue
            pieces = [piece.replace("{n}", str(number)) for piece, _, _ in chance.sample(PIECES, 3)]
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("\n".join(pieces) if path.endswith(".py") else f"// {number}\nvar x{number} = 1\n")
        if chance.random() < 0.2:
            shutil.rmtree(root / "p", ignore_errors=True)
        if chance.random() < 0.3:
            index = CodeIndex(str(root), tmp_path / "cache")  # as another process
        refresh(index, root)
        scratch = CodeIndex(str(root), tmp_path / f"scratch{number}")
        refresh(scratch, root)
        assert everything(index) == everything(scratch)
        assert index.counts() == scratch.counts()
