"""The statistics of a codebase: the CodeNav paper's counts, checked with a count of the syntax trees themselves."""

from __future__ import annotations

import ast
import email
import json
import shutil
from pathlib import Path

import pytest

from handiwork.codeindex.files import SourceTree
from handiwork.codeindex.index import CodeIndex
from handiwork.codeindex.statistics import CodebaseStatistics, count


def counted(root: Path, cache: Path) -> CodebaseStatistics:
    tree, codes = SourceTree.of_directory(root), CodeIndex(str(root), cache)
    codes.refresh(tree)
    return count(codes, tree)


def test_statements_at_the_top_are_snippets_and_only_files_that_are_read_count(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/a.py").write_text(
        '"""A docstring."""\nimport os\nX: int = 1\nif X:\n    Y = 2\n\n\nclass A:\n    def f(self):\n'
        "        def g():\n            pass\n\n\nasync def h():\n    pass\n\n\ndef i():\n    pass\n"
    )
    (root / "b.py").write_text("x = 1")
    (root / "pages.py").write_text("y = 'a\x1cb'\n\x0c\nz = 1\n")
    (root / "empty.py").write_text("")
    (root / "broken.py").write_text("def fine(): pass\n\n\ndef (:\n")
    (root / "hidden.py").write_text("# index: false\ndef f(): pass\n")
    (root / "README.md").write_text("# Title\n\nText.\n")
    (root / "c.js").write_text("function f() {}\n")
    texts = [(root / path).read_text() for path in ("pkg/a.py", "b.py", "broken.py", "pages.py")]
    statistics = counted(root, tmp_path / "cache")
    assert (statistics.files, statistics.functions, statistics.classes) == (5, 2, 1)
    assert 11 <= statistics.snippets <= 12  # the broken line may be one too
    assert statistics.lines == 19 + 1 + 4 + 3
    assert statistics.characters == sum(map(len, texts))


def test_a_tree_without_python_has_no_statistics(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/c.js").write_text("function f() {}\n")
    assert counted(tmp_path / "tree", tmp_path / "cache") == CodebaseStatistics(0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("package", [json, email])
def test_packages_of_the_standard_library(package: object, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    shutil.copytree(Path(str(getattr(package, "__file__"))).parent, root, ignore=shutil.ignore_patterns("__pycache__"))  # noqa: B009
    texts = [file.read_text() for file in sorted(root.rglob("*.py"))]
    statements = [statement for text in texts for statement in ast.parse(text).body]
    assert counted(root, tmp_path / "cache") == CodebaseStatistics(
        files=len(texts),
        snippets=len(statements),
        lines=sum(text.count("\n") for text in texts),
        characters=sum(map(len, texts)),
        functions=sum(isinstance(one, ast.FunctionDef) for one in statements),
        classes=sum(isinstance(one, ast.ClassDef) for one in statements),
    )
