"""Compares two versions of a source file: reads a line of JSON from stdin and writes one to stdout.

{"path": TEXT, "before": BASE64 or null, "after": BASE64, "names": BOOL} is answered by {"added": [TEXT], "remarks":
[TEXT], "doubted": BOOL}: the errors that only the version ``after`` has, with ``names`` also undefined names of Python.
``remarks`` are errors of a grammar that lacks parts of its language. ``doubted`` tells that they are a syntax error of
Python which a newer Python might accept. It runs in a Python from 3.9 on, beside the notebook's variables and not among
them.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from .check import LIMIT, is_newer_python, language_of, python_problem, syntax_problems
from .names import new_undefined_names

_PARTIAL = ("c", "cpp", "typescript", "tsx")
"""Languages whose grammars do not know all right programs: macros of C hide syntax, and TypeScript grows every year."""

_OUTSIDE = re.compile(
    rb"""//[^\n]*|/\*.*?\*/|\bR"([^(\s]*)\(.*?\)\1"|\b[0-9][\w']*"""
    rb"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|([][(){}])""",
    re.DOTALL,
)
"""Comments, numbers and strings, with the brackets outside of them as the second group."""


def main() -> None:
    """Answer one request."""
    request: Any = json.loads(sys.stdin.buffer.read())
    before = None if request["before"] is None else base64.b64decode(request["before"])
    after = base64.b64decode(request["after"])
    json.dump(compare(request["path"], before, after, names=request["names"]), sys.stdout)


def print_verdict() -> None:
    """Print "error" if the Python source on stdin is wrong even in a newer Python, "fine" if it is not."""
    source = sys.stdin.buffer.read()
    problem = python_problem(source)
    sys.stdout.write("fine" if problem is None or is_newer_python(problem, source) else "error")


def compare(path: str, before: bytes | None, after: bytes, *, names: bool) -> dict[str, Any]:
    """Return the answer for the two versions; ``before`` is None for a new file."""
    if language_of(path, after) == "python":
        return _compare_python(path, before, after, names=names)
    old = syntax_problems(path, before) if before is not None else []
    new = syntax_problems(path, after)
    known = {problem.message for problem in old}
    added = [str(problem) for problem in new if problem.message not in known] or [str(problem) for problem in new]
    if len(new) <= len(old):
        return _answer([])
    if language_of(path, after) in _PARTIAL and (_is_balanced(after) or not _is_balanced(before or b"")):
        return _answer([], remarks=added)
    return _answer(added)


def _compare_python(path: str, before: bytes | None, after: bytes, *, names: bool) -> dict[str, Any]:
    if len(after) > LIMIT or not after.strip():
        return _answer([])
    problem, old_problem = python_problem(after), None if before is None else python_problem(before)
    if problem is not None:
        added = [str(problem)] if old_problem is None else []
        return _answer(added, doubted=bool(added))
    return _answer([str(name) for name in new_undefined_names(path, before, after)] if names else [])


def _answer(added: list[str], remarks: Sequence[str] = (), *, doubted: bool = False) -> dict[str, Any]:
    return {"added": added, "remarks": remarks, "doubted": doubted}


def _is_balanced(source: bytes) -> bool:
    """Return whether each bracket outside of strings and comments is closed by one of its kind."""
    waiting: list[bytes] = []
    for match in _OUTSIDE.finditer(source):
        bracket = match[2]
        if bracket in (b"(", b"[", b"{"):
            waiting.append({b"(": b")", b"[": b"]", b"{": b"}"}[bracket])
        elif bracket and (not waiting or waiting.pop() != bracket):
            return False
    return not waiting
