"""docs/security.md promises nothing that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/security.md"
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> list[str]:
    """Rows of the page's tables, without their heads."""
    lines = PAGE.read_text().splitlines()
    return [line for line in lines if line.startswith("|") and not re.match(r"\| *(promise|---)", line)]


@pytest.mark.parametrize("row", promises(), ids=lambda row: row[2:60])
def test_every_promise_names_a_test_that_exists(row: str) -> None:
    named = NAMED_TEST.findall(row)
    assert named, "a promise without a test"
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text())
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in defined, f"{file} has no {name}"


def test_every_test_of_an_attack_stands_on_the_page() -> None:
    named = {name for _, name in NAMED_TEST.findall(PAGE.read_text())}
    for file in Path(__file__).parent.glob("test_attacker_*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                assert node.name in named, f"{file.name}::{node.name} is not on docs/security.md"
