"""``handiwork index``: the blocks of a codebase counted, and found by a query."""

from __future__ import annotations

import json

import pytest

from handiwork.events.code_memory import CodeEpisode, UsefulBlock
from handiwork.session.storage.code_memory import CodeMemory
from tests.cli.program import Program

pytestmark = pytest.mark.slow

SOURCE = '''\
import math


class Circle:
    """A round thing."""

    def area(self, radius):
        return math.pi * radius**2


def area_of_square(side):
    """Return the area."""
    return side**2
'''


def test_it_counts_blocks_finds_them_and_reads_only_what_has_changed(program: Program) -> None:
    (program.workspace / "shapes.py").write_text(SOURCE)
    counted = program("index")
    assert counted.returncode == 0, counted.stderr
    assert "read 1 file in" in counted.stderr
    assert counted.stdout.splitlines()[:3] == [
        f"4 blocks of 1 file in {program.workspace}",
        "        1  FUNCTION",
        "        1  CLASS",
    ]
    assert counted.stdout.splitlines()[-1] == (
        "Python, as the CodeNav paper counts: 1 files, 3 snippets, 13 lines, 191 characters, 1 functions, 1 classes"
    )
    (counts,) = [json.loads(line) for line in program("index", "--json").stdout.splitlines()]
    assert counts["python"] == {"files": 1, "snippets": 3, "lines": 13} | {
        "characters": 191,
        "functions": 1,
        "classes": 1,
    }
    found = program("index", "--search", "type: FUNCTION AND area")
    assert found.stdout.splitlines() == [
        "shapes.py:11-13  FUNCTION",
        "    def area_of_square(side)",
        "    Return the area.",
        "1 block matches.",
    ]
    assert found.stderr == ""
    (row,) = [
        json.loads(line) for line in program("index", "--search", "name: Circle.area", "--json").stdout.splitlines()
    ]
    assert (row["file_path"], row["first"], row["last"], row["type"]) == ("shapes.py", 7, 8, "METHOD")
    assert row["code"].startswith("    def area(self, radius):")
    assert sorted(path.name for path in program.workspace.iterdir()) == ["greeting.txt", "shapes.py"]


@pytest.mark.slow
def test_an_installed_package_is_found_by_its_name(program: Program) -> None:
    done = program("index", "--module", "json", "--search", "prototype: raw_decode")
    assert "decoder.py" in done.stdout
    for module, file in (("argparse", "argparse.py"), ("json.decoder", "decoder.py")):
        (row,) = [json.loads(line) for line in program("index", "--module", module, "--json").stdout.splitlines()]
        assert (row["path"].rpartition("/")[2], row["files"]) == (file, 1)
    missing = program("index", "--module", "no_such_package")
    assert missing.returncode == 2
    assert "has no module no_such_package: install it there" in missing.stderr


def test_files_that_are_not_read_whole_are_named(program: Program) -> None:
    (program.workspace / "large.py").write_text("x = 1\n" * 200_000)
    (program.workspace / "many.py").write_text("f()\n" * 10_001)
    counted = program("index")
    assert "not read: large.py: it has more than 1,000,000 bytes" in counted.stdout
    assert "cut: many.py: only its first 10,000 blocks are indexed" in counted.stdout
    for path in ("large.py", "many.py"):
        (program.workspace / path).unlink()
    assert "handiwork: removed 2 files in" in program("index").stderr


def test_a_broken_query_and_a_missing_folder_are_told(program: Program) -> None:
    broken = program("index", "--search", "(area")
    assert broken.returncode == 2
    assert broken.stderr == ("handiwork: The query cannot be read at character 1: the parenthesis is not closed.\n")
    missing = program("index", "no-such-folder")
    assert missing.returncode == 2
    assert "is not a directory: name the folder of a codebase" in missing.stderr
    both = program("index", ".", "--module", "json")
    assert both.returncode == 2


def test_the_memory_of_a_codebase_is_shown_and_cleared(program: Program) -> None:
    block = UsefulBlock(file_path="shapes.py", type="FUNCTION", prototype="def area(a, b)")
    memory = CodeMemory(program.data, str(program.workspace))
    memory.remember(CodeEpisode(task="Compute an area.", blocks=(block,), solution="area(2, 3)"))
    memory.remember_docstrings({"a1": "Return the area."})
    shown = program("index", "--memory")
    assert shown.stdout.splitlines() == [
        "Compute an area.",
        "    shapes.py: def area(a, b)",
        f"1 task and 1 docstring remembered of {program.workspace}.",
    ]
    (row,) = [json.loads(line) for line in program("index", "--memory", "--json").stdout.splitlines()]
    assert (row["task"], row["solution"]) == ("Compute an area.", "area(2, 3)")
    assert "forgot 1 task and 1 docstring of" in program("index", "--forget").stderr
    assert (memory.episodes(), memory.docstrings()) == ((), {})
    refused = program("index", "--memory", "--search", "area")
    assert refused.returncode != 0
    assert "leave --module, --search out" in refused.stderr
