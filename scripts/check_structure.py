"""Checks what no linter checks: imports point downwards, files and functions stay short. Part of `make lint`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "handiwork"

LAYERS: dict[str, set[str]] = {
    "paths": set(),
    "process": set(),
    "events": set(),
    "settings": {"events", "sandbox"},
    "log": {"events", "paths", "process"},
    "llm": {"events", "paths"},
    "sandbox": {"events", "paths", "process"},
    "agents": {"events", "llm"},
    "session": {"agents", "events", "llm", "log", "paths", "sandbox", "settings"},
    "evals": {"agents", "events", "llm", "log", "paths", "sandbox", "session"},
    "server": {"agents", "events", "llm", "log", "paths", "process", "sandbox", "session", "settings"},
    "cli": {"agents", "evals", "events", "llm", "log", "paths", "sandbox", "server", "session", "settings"},
}
"""What each part of the package may import besides itself."""

FILE_LIMIT, FUNCTION_LIMIT, LOOP_LIMIT = 400, 60, 200
LOOP = "handiwork/session/session.py"
LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()
"""The exceptions, "path" and "path:function"; these sets may only shrink."""


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import of the package, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.startswith("handiwork."))


def import_faults(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield what of the file's imports points upwards."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    layer = parts[0]
    if layer == "__init__":
        return
    standalone = parts[:2] == ("sandbox", "inside")
    for line, name in imports(tree):
        target = name.split(".")[1]
        if standalone:
            yield f"{path.relative_to(ROOT)}:{line}: the inside server runs alone and may not import {name}"
        elif target != layer and target not in LAYERS[layer] and target != "__version__":
            yield f"{path.relative_to(ROOT)}:{line}: {layer} may not import {name}"


def length_faults(path: Path, tree: ast.Module, lines: int) -> Iterator[str]:
    """Yield what is too long in the file."""
    name = str(path.relative_to(ROOT))
    limit = LOOP_LIMIT if name == LOOP else FILE_LIMIT
    if lines > limit and name not in LONG_FILES:
        yield f"{name}: {lines} lines, over {limit}"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LIMIT and f"{name}:{node.name}" not in LONG_FUNCTIONS:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines, over {FUNCTION_LIMIT}"


def main() -> int:
    """Print every fault; return 1 if there is one."""
    faults: list[str] = []
    for folder in ("handiwork", "scripts", "bundle", "perf", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            tree = ast.parse(text)
            faults += length_faults(path, tree, text.count("\n"))
            if path.is_relative_to(PACKAGE):
                faults += import_faults(path, tree)
    print("\n".join(faults) if faults else "structure: clean")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
