"""The queries of perf.retrieval tell no name, its sources without docstrings are the same program, its places count."""

from __future__ import annotations

import ast
from pathlib import Path

from perf.retrieval import (
    Answer,
    Definition,
    by_index,
    by_whole_files,
    draw,
    query_words,
    ranks,
    recall,
    without_docstrings,
)

SHOP = '''\
"""Prices."""


class PriceList:
    """Prices with \N{EURO SIGN}; of all articles.

    A second paragraph.
    """

    def total(self): "Return the sum."; return 1


async def tax(net, rate=0.19):
    """Compute the levy owed to the state on what a customer pays."""


def _private():
    """Remember these words for nobody outside of here."""
'''


def test_a_query_has_the_first_paragraph_without_the_words_of_the_name() -> None:
    docstring = "Read JSON lines, then parse_json each LINE of them again.\n\nMore words."
    assert query_words(docstring, "readLines") == ("json", "then", "parse_json", "each", "line", "of", "them", "again")


def test_sources_without_docstrings_are_the_same_program() -> None:
    bare = without_docstrings(SHOP.encode())
    assert all(not ast.get_docstring(node) for node in ast.walk(ast.parse(bare)) if isinstance(node, ast.ClassDef))
    assert b"levy" not in bare
    assert b"Return the sum" not in bare
    assert b"return 1" in bare
    assert without_docstrings(b"def broken(") == b"def broken("


def test_public_definitions_are_found_by_their_descriptions(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / "tests").mkdir(parents=True)
    (root / "prices.py").write_text(SHOP)
    (root / "tests/prices.py").write_text(SHOP)
    (root / "other.py").write_text("def state(customer):\n    return customer.state\n")
    drawn = sorted(draw(root))
    assert [(one.path, one.name) for one in drawn] == [("prices.py", "PriceList"), ("prices.py", "tax")]
    (root / "tests/prices.py").unlink()
    ours, whole = ranks(by_index(root, tmp_path / "cache"), drawn), ranks(by_whole_files(root), drawn)
    assert (ours.files, ours.blocks, whole.files) == ([0, 0], [0, 0], [0, 0])


def test_recall_counts_places_before_the_depth() -> None:
    answers = {"a": Answer(["x.py", "y.py"]), "b": Answer(["z.py", "w.py", "v.py", "x.py"]), "c": Answer([])}
    drawn = [Definition("x.py", name, (name,)) for name in answers]
    found = ranks(lambda words: answers[words[0]], drawn).files
    assert found == [0, 3, None]
    assert [round(recall(found, depth), 2) for depth in (3, 10)] == [0.33, 0.67]
