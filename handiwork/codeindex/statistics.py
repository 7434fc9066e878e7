"""The statistics of a codebase as the CodeNav paper counts them (arXiv 2406.12276, table 6).

They are of the files named *.py that the index has read, without those whose first line says ``index: false``. A
snippet is a statement at the top of a module, as CodeNav indexes it: a function, class, import, assignment, conditional
or other statement. Methods, and functions within others, are parts of their snippet. CodeNav leaves out a file with a
syntax error; here the statements that the index finds in it count.
"""

from __future__ import annotations

from typing import NamedTuple

from handiwork.codeindex.blocks import TYPES, decode, is_excluded
from handiwork.codeindex.files import SourceTree
from handiwork.codeindex.index import CodeIndex
from handiwork.errors import WorkspaceError

PYTHON = ".py"


class CodebaseStatistics(NamedTuple):
    """The paper's counts, of the Python files of a codebase."""

    files: int
    snippets: int
    lines: int
    characters: int
    functions: int
    classes: int


def count(codes: CodeIndex, tree: SourceTree) -> CodebaseStatistics:
    """Return the statistics of a tree whose index has just been refreshed.

    Files that cannot be read any more are left out. Raises QueryError.
    """
    problems = codes.problems()
    texts = [
        text
        for file in tree.files()
        if file.path.endswith(PYTHON) and file.path not in problems
        if (text := _text(tree, file.path)) is not None
    ]
    blocks = {
        kind: codes.search(f"type: {kind} AND file_path: *{PYTHON}", 1).total for kind in TYPES if kind != "METHOD"
    }
    return CodebaseStatistics(
        files=len(texts),
        snippets=sum(blocks.values()),
        lines=sum(text.count("\n") + (not text.endswith("\n")) for text in texts if text),
        characters=sum(map(len, texts)),
        functions=blocks["FUNCTION"],
        classes=blocks["CLASS"],
    )


def _text(tree: SourceTree, path: str) -> str | None:
    """Return the text of a file that is indexed, None of another."""
    try:
        text = decode(tree.read(path))
    except (OSError, WorkspaceError):
        return None
    return None if text is None or is_excluded(text) else text
