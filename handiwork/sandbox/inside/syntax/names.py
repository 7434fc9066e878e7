"""Finds names of a Python file that nothing defines, with pyflakes; it runs where the syntax check does."""

# pyflakes is found at run time, not when this is checked.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import ast
import importlib
import os
import sys
import warnings
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from .check import LIBRARIES, LIMIT, SyntaxProblem, language_of

_NAMES = ("UndefinedName", "UndefinedLocal", "UndefinedExport", "DuplicateArgument")
"""The messages of pyflakes that count."""


def new_undefined_names(
    path: str, before: bytes | None, after: bytes, told: Collection[str] = ()
) -> list[SyntaxProblem]:
    """Return the undefined names that only the version ``after`` of a Python file has; ``before`` is None if it is new.

    Those with a message in ``told`` are new in any case. Each name comes once. Names on lines with a comment ``noqa``
    do not count. There are none if ``after`` cannot be compiled, the file is in another language or larger than LIMIT,
    or this Python has no pyflakes; none but told ones if ``before`` cannot be compiled.
    """
    if language_of(path, after) != "python" or len(after) > LIMIT:
        return []
    names = _undefined_names(path, after)
    if not names:
        return []
    known = _undefined_names(path, before or b"")
    messages = {name.message for name in (names if known is None else known)} - {*told}
    added: list[SyntaxProblem] = []
    for name in names:
        if name.message not in messages:
            messages.add(name.message)
            added.append(name)
    return added


def _undefined_names(path: str, source: bytes) -> list[SyntaxProblem] | None:
    """Return the undefined names of a Python file, None if it cannot be compiled."""
    checker = _checker()
    if checker is None:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            messages: Any = checker.Checker(ast.parse(source), filename=path).messages
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = source.splitlines()  # as the compiler counts them
    return [
        SyntaxProblem(message.lineno, message.message % message.message_args)
        for message in sorted(messages, key=lambda message: message.lineno)
        if type(message).__name__ in _NAMES and b"noqa" not in lines[message.lineno - 1]
    ]


@lru_cache(maxsize=None)  # noqa: UP033 - also runs on Pythons that have it so
def _checker() -> Any:
    """Return the module pyflakes.checker, None if this Python is too old for it."""
    path = list(sys.path)
    if LIBRARIES in os.environ:
        sys.path.append(os.environ[LIBRARIES])  # pyflakes is plain Python: any Python imports the bundle's
    try:
        return importlib.import_module("pyflakes.checker")
    except (ImportError, SyntaxError):
        return None
    finally:
        sys.path[:] = path
