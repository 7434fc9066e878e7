"""Blocks of Python by the rules of CodeNav (arXiv 2406.12276): the statements at a module's top, by their AST class.

FunctionDef is a function, ClassDef a class, Assign an assignment, Import and ImportFrom are imports, If and For are
conditionals, and everything else is other, also async functions and annotated assignments. Methods of classes are
blocks too, unlike in CodeNav.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from handiwork.codeindex.blocks import Block, BlockType, collapse

_TYPES: dict[type[ast.stmt], BlockType] = {
    ast.FunctionDef: "FUNCTION",
    ast.ClassDef: "CLASS",
    ast.Assign: "ASSIGNMENT",
    ast.Import: "IMPORT",
    ast.ImportFrom: "IMPORT",
    ast.If: "CONDITIONAL",
    ast.For: "CONDITIONAL",
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEEPEST = 5
"""Classes within classes whose methods are blocks."""


def python_blocks(text: str) -> list[Block]:
    """Return the blocks of a module. Raises SyntaxError, ValueError, RecursionError, MemoryError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast.parse(text)
    return [block for statement in module.body for block in _blocks(statement)]


def _blocks(statement: ast.stmt) -> Iterator[Block]:
    yield _block(_TYPES.get(type(statement), "OTHER"), statement, _name(statement))
    if isinstance(statement, ast.ClassDef):
        yield from _methods(statement, statement.name, 1)


def _methods(parent: ast.ClassDef, prefix: str, depth: int) -> Iterator[Block]:
    for statement in parent.body:
        if isinstance(statement, _FUNCTIONS):
            yield _block("METHOD", statement, f"{prefix}.{statement.name}")
        elif isinstance(statement, ast.ClassDef) and depth < _DEEPEST:
            yield from _methods(statement, f"{prefix}.{statement.name}", depth + 1)


def _block(kind: BlockType, statement: ast.stmt, name: str) -> Block:
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        first = min([first, *(decorator.lineno for decorator in statement.decorator_list)])
        return Block(kind, first, last, name, _prototype(statement), ast.get_docstring(statement) or "")
    return Block(kind, first, last, name)


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=targets):
            return ", ".join(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def _prototype(statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if isinstance(statement, ast.ClassDef):
        arguments = [*map(ast.unparse, statement.bases), *(ast.unparse(keyword) for keyword in statement.keywords)]
        return f"class {statement.name}({', '.join(arguments)})" if arguments else f"class {statement.name}"
    keyword = "async def" if isinstance(statement, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(statement.returns)}" if statement.returns else ""
    return collapse(f"{keyword} {statement.name}({ast.unparse(statement.args)}){returns}")
