#!/usr/bin/env python3
"""Errors in a file that are certain without running it: syntax errors, and undefined names in Python.

As a program it takes flake8's command line and prints its form of lines, for tools that call flake8 on systems without
it. The codes are flake8's: E999 for a syntax error, F821 for an undefined name.
"""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
import symtable
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

SYNTAX, UNDEFINED = "E999", "F821"
_IMPLICIT = {"__file__", "__name__", "__doc__", "__path__", "__package__", "__spec__", "__loader__", "__builtins__"}
_BUILTIN = {"__annotations__", "__class__", "__module__", "__qualname__", "WindowsError", *_IMPLICIT, *dir(builtins)}


class LintProblem(NamedTuple):
    """An error at a line, counted from 1."""

    line: int
    code: str
    message: str


def problems(name: str, data: bytes) -> list[LintProblem]:
    """Return the errors of a file by its name's ending; a kind that is not known has none."""
    checks = {"py": _python, "pyi": _python, "json": _json, "sh": _bash, "bash": _bash}
    check = checks.get(name.rpartition(".")[2])
    return check(data) if check else []


def new_errors(
    before: list[LintProblem], after: list[LintProblem], first: int, last: int, count: int
) -> list[LintProblem]:
    """Return the errors that an edit added, which put ``count`` lines in place of ``first`` to ``last``.

    Errors outside of these lines only move. A syntax error that was hidden behind another one is none of the edit's,
    and neither is a name that the file uses without a definition already.
    """
    known = {problem.message for problem in before}
    moved = {
        problem._replace(line=problem.line + (count - (last - first + 1)) * (problem.line > last))
        for problem in before
        if not first <= problem.line <= last
    }
    added = [p for p in after if p not in moved and not (p.code == UNDEFINED and p.message in known)]
    if any(problem.code == SYNTAX for problem in before):
        # A syntax error may be found a line before or after its cause.
        near = {problem: int(problem.code == SYNTAX) for problem in added}
        edited = [p for p in added if first - near[p] <= p.line < first + count + near[p]]
        return [problem for problem in edited if problem.message not in known]
    return added


def _python(data: bytes) -> list[LintProblem]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "file", "exec", dont_inherit=True)
            tree = ast.parse(data)
            return list(_undefined(tree, symtable.symtable(cast("Any", data), "file", "exec")))
    except SyntaxError as error:
        return [LintProblem(error.lineno or 1, SYNTAX, f"{type(error).__name__}: {error.msg}")]
    except (ValueError, RecursionError) as error:
        return [LintProblem(1, SYNTAX, f"{type(error).__name__}: {error}")]


def _undefined(tree: ast.Module, table: symtable.SymbolTable) -> Iterator[LintProblem]:
    """Yield the names that no scope binds; nothing in a module that may bind names in ways that cannot be seen."""
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stars = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes)
    dynamic = {"exec", "globals", "locals", "vars", "NameError", "__getattr__"}
    if stars or dynamic & {name.id for name in names}:
        return
    tables = list(_tables(table))
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    bound |= {child.get_name() for child in table.get_children()}
    bound |= {s.get_name() for t in tables for s in t.get_symbols() if s.is_declared_global() and s.is_assigned()}
    used = {
        symbol.get_name()
        for one in tables
        for symbol in one.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or one is table)
    }
    missing = used - bound - _BUILTIN
    for name in sorted(names, key=lambda node: node.lineno):
        if name.id in missing and isinstance(name.ctx, ast.Load):
            missing.discard(name.id)
            yield LintProblem(name.lineno, UNDEFINED, f"undefined name {name.id!r}")


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _json(data: bytes) -> list[LintProblem]:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return [LintProblem(error.lineno, SYNTAX, error.msg)]
    except ValueError as error:
        return [LintProblem(1, SYNTAX, str(error))]
    return []


def _bash(data: bytes) -> list[LintProblem]:
    try:
        done = subprocess.run(["bash", "-n"], input=data, capture_output=True, timeout=10)  # noqa: S603, S607, RUF100
    except (OSError, subprocess.TimeoutExpired):
        return []
    message = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    _, _, rest = message.partition("line ")
    line, _, text = rest.partition(":")
    return (
        [LintProblem(int(line) if line.isdecimal() else 1, SYNTAX, text.strip() or message)] if done.returncode else []
    )


def main() -> int:
    """Print the errors of the files named; return 1 if there are any."""
    count = 0
    for path in [argument for argument in sys.argv[1:] if not argument.startswith("-")]:
        with open(path, "rb") as file:
            for problem in problems(path, file.read()):
                count += 1
                sys.stdout.write(f"{path}:{problem.line}:1: {problem.code} {problem.message}\n")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
