"""Code bases of tools that benchmarks put into the workspace, and the descriptions of them that agents read."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["names", "descriptions", "prototypes"]
"""The detail of a tool's description: its name, also its purpose, or also its prototype."""


@dataclass(frozen=True, slots=True)
class CodebaseTool:
    """A public function or method of a code base: ``name`` is its call's name, ``file`` its module's path."""

    file: str
    name: str
    description: str
    prototype: str


def install(package: Path, workspace: Path) -> Path:
    """Copy a package's sources into the workspace, and return its folder there. Raises OSError."""
    target = workspace / package.name
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    return target


def tools_of(package: Path) -> list[CodebaseTool]:
    """Return the public functions and methods in the modules of a package, in the order of their files."""
    files = sorted(package.glob("*.py"))
    return [tool for file in files if not file.name.startswith("_") for tool in _tools_in(file)]


def describe(tools: list[CodebaseTool], level: Level) -> str:
    """Return a numbered list of tools, by file."""
    lines: list[str] = []
    file = ""
    for number, tool in enumerate(tools, 1):
        if tool.file != file:
            file = tool.file
            lines.append(f"file: {file}")
        about = "" if level == "names" else f": {tool.description}"
        lines.append(f"[{number}] {tool.name}{about}")
        if level == "prototypes":
            lines.append(f"    Prototype: {tool.prototype}")
    return "\n".join(lines)


def _tools_in(file: Path) -> Iterator[CodebaseTool]:
    path = f"{file.parent.name}/{file.name}"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield from _tool(path, node.name, node, ast.get_docstring(node))
        elif isinstance(node, ast.ClassDef):
            about = ast.get_docstring(node)
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    yield from _tool(path, f"{node.name}().{method.name}", method, ast.get_docstring(method) or about)


def _tool(path: str, name: str, node: ast.FunctionDef, docstring: str | None) -> Iterator[CodebaseTool]:
    if name.startswith("_") or node.name.startswith("_"):
        return
    parameters = node.args
    if "()." in name:
        parameters.args = parameters.args[1:]  # without self
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    yield CodebaseTool(path, name, " ".join((docstring or "").split()), f"{name}({ast.unparse(parameters)}){returns}")
