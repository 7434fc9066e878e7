"""Blocks of Python by the rules of CodeNav (arXiv 2406.12276): the statements at a module's top, by their AST class.

FunctionDef is a function, ClassDef a class, Assign an assignment, Import and ImportFrom are imports, If and For are
conditionals, and everything else is other, also async functions and annotated assignments. Methods of classes are
blocks too, unlike in CodeNav. A module that this Python refuses, such as one for Python 2 or a newer one, is read by
its tree-sitter grammar, by the same rules.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

from handiwork.codeindex.blocks import Block, BlockType, collapse
from handiwork.sandbox.inside.syntax.check import parser_of

Node = Any
"""A tree-sitter node; the wheels of grammars and parser are an extra, which the type checker lacks."""

_TYPES: dict[type[ast.stmt], BlockType] = {
    ast.FunctionDef: "FUNCTION",
    ast.ClassDef: "CLASS",
    ast.Assign: "ASSIGNMENT",
    ast.Import: "IMPORT",
    ast.ImportFrom: "IMPORT",
    ast.If: "CONDITIONAL",
    ast.For: "CONDITIONAL",
}
_NODE_TYPES: dict[str, BlockType] = {
    "function_definition": "FUNCTION",
    "class_definition": "CLASS",
    "assignment": "ASSIGNMENT",
    "import_statement": "IMPORT",
    "import_from_statement": "IMPORT",
    "future_import_statement": "IMPORT",
    "if_statement": "CONDITIONAL",
    "for_statement": "CONDITIONAL",
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEEPEST = 5
"""Classes within classes whose methods are blocks."""


def python_blocks(text: str) -> list[Block]:
    """Return the blocks of a module. Raises SyntaxError, ValueError, RecursionError, MemoryError."""
    return [block for statement in _parse(text) for block in _blocks(statement)]


def python_grammar_blocks(text: str) -> list[Block] | None:
    """Return the blocks of a module by its grammar, as far as it goes; None if the grammar is not installed."""
    parser = parser_of("python")
    if parser is None:
        return None
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    return [block for node in _statements(root) for block in _node_blocks(node)]


def _parse(text: str) -> list[ast.stmt]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text).body


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
            return ", ".join(name for target in targets for name in _names(target))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def _names(target: ast.AST) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _prototype(statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if isinstance(statement, ast.ClassDef):
        arguments = [*map(ast.unparse, statement.bases), *(ast.unparse(keyword) for keyword in statement.keywords)]
        return f"class {statement.name}({', '.join(arguments)})" if arguments else f"class {statement.name}"
    keyword = "async def" if isinstance(statement, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(statement.returns)}" if statement.returns else ""
    return collapse(f"{keyword} {statement.name}({ast.unparse(statement.args)}){returns}")


def _statements(parent: Node) -> Iterator[Node]:
    """Yield the statements in a node; text that is no statement is one if there is no other around it."""
    for node in parent.named_children:
        if node.type == "ERROR":
            yield from [one for one in _statements(node) if one.type.endswith(("_statement", "_definition"))] or [node]
        elif node.type != "comment":
            yield node


def _node_blocks(outer: Node) -> Iterator[Block]:
    node = _undecorated(outer)
    if node.type == "expression_statement" and node.named_child_count == 1:
        node = node.named_children[0]
    kind = _NODE_TYPES.get(node.type, "OTHER")
    if node.child_by_field_name("type") is not None or (node.children and node.children[0].type == "async"):
        kind = "OTHER"
    yield _node_block(kind, outer, node, _node_name(node))
    if node.type == "class_definition":
        yield from _node_methods(node, _text(node, "name"), 1)


def _node_methods(parent: Node, prefix: str, depth: int) -> Iterator[Block]:
    body = parent.child_by_field_name("body")
    for outer in _statements(body) if body is not None else ():
        node = _undecorated(outer)
        if node.type == "function_definition":
            yield _node_block("METHOD", outer, node, f"{prefix}.{_text(node, 'name')}")
        elif node.type == "class_definition" and depth < _DEEPEST:
            yield from _node_methods(node, f"{prefix}.{_text(node, 'name')}", depth + 1)


def _node_block(kind: BlockType, outer: Node, node: Node, name: str) -> Block:
    first, last = outer.start_point[0] + 1, outer.end_point[0] + 1
    if last > first and outer.end_point[1] == 0:
        last -= 1  # a node may end with its newline
    if node.type in ("function_definition", "class_definition"):
        return Block(kind, first, last, name, _node_prototype(node), _node_docstring(node))
    return Block(kind, first, last, name)


def _undecorated(node: Node) -> Node:
    return (node.child_by_field_name("definition") or node) if node.type == "decorated_definition" else node


def _node_name(node: Node) -> str:
    if node.type in ("function_definition", "class_definition"):
        return _text(node, "name")
    names: list[str] = []
    while node is not None and node.type == "assignment":  # x = y = 1 is an assignment in an assignment
        names += _names(ast.Module(_parsed(_text(node, "left")), []))
        if node.child_by_field_name("type") is not None:
            return names[0] if node.child_by_field_name("left").type == "identifier" else ""
        node = node.child_by_field_name("right")
    return ", ".join(names)


def _node_prototype(node: Node) -> str:
    """Return the prototype as that of the AST; without type parameters, which an older Python refuses."""
    name, returns = _text(node, "name"), _text(node, "return_type")
    if node.type == "class_definition":
        header = f"class {name}{_text(node, 'superclasses')}"
    else:
        keyword = "async def" if node.children[0].type == "async" else "def"
        header = f"{keyword} {name}{_text(node, 'parameters')}" + (f" -> {returns}" if returns else "")
    match _parsed(f"{header}: pass"):
        case [(ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()) as statement]:
            return _prototype(statement)
        case _:
            return collapse(header)


def _node_docstring(node: Node) -> str:
    body = node.child_by_field_name("body")
    first = next(_statements(body), None) if body is not None else None
    if first is None or first.type != "expression_statement":
        return ""
    match _parsed(first.text.decode()):
        case [ast.Expr(ast.Constant(str(text)))]:
            return inspect.cleandoc(text)
        case _:
            return ""


def _parsed(text: str) -> list[ast.stmt]:
    """Return the statements of a text, none if this Python refuses it."""
    try:
        return _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _text(node: Node, field: str) -> str:
    """Return the text of a node's field, "" without it."""
    child = node.child_by_field_name(field)
    return "" if child is None else child.text.decode()
