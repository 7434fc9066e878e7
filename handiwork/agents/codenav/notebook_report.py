"""Runs in the sandbox's notebook before and after each cell: prints the cell's faults, then what it changed.

The agent sends this file as the text of a cell, with SHELL, the notebook's IPython, and REQUEST: {"code": TEXT,
"folders": [PATH]} before the cell and {} after it. It leaves no name among the notebook's variables, imports only the
standard library at first, and runs in any Python from 3.9 on.
"""

# Cells print their results; pyflakes and mypy are found at run time, not when this is checked.
# ruff: noqa: T201
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from typing import Any

SHELL: Any = globals().get("SHELL")
REQUEST: dict[str, Any] = globals().get("REQUEST", {})

VALUE, SHOWN, PROBLEMS, NAMES = 500, 14, 10, 40
"""Characters of a variable's value, and numbers of variables, of faults and of names that are printed."""
TYPES_TIMEOUT = 30.0
"""Seconds of a check of types."""

_HARMLESS = {"UnusedImport", "UnusedVariable", "UnusedAnnotation", "RedefinedWhileUnused", "YieldOutsideFunction"}
"""Messages of pyflakes about names that a later cell may use, and about code that a notebook takes."""
_HARMLESS_TYPES = "name-defined,no-redef,var-annotated,top-level-await,import-untyped,import-not-found,attr-defined"
"""Errors of mypy that pyflakes finds, that are none in a notebook, or that dynamic attributes cause."""

_CALL = re.compile(r"([\w.]+)\(\) (?:got|missing|takes) ")
"""The beginning of a message about arguments that do not fit."""


def import_roots(folders: list[str]) -> Iterator[str]:
    """Yield the folders from which the packages and modules in ``folders`` are imported."""
    for folder in map(os.path.abspath, folders):
        while os.path.exists(os.path.join(folder, "__init__.py")) and folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
        yield folder


def values() -> dict[str, str]:
    """Return the user's variables as text, without modules, hidden names and the platform's functions."""
    result: dict[str, str] = {}
    for name, value in list(SHELL.user_ns.items()):
        is_own = not name.startswith("_") and name not in SHELL.user_ns_hidden
        if is_own and not isinstance(value, types.ModuleType) and "handiwork_skills" not in type(value).__module__:
            try:
                result[name] = str(value)
            except Exception as error:  # noqa: BLE001 - the class is the user's
                result[name] = f"(its text raises {type(error).__name__})"
    return result


def name_faults(source: str, known: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, fault) of undefined names and wrong formats; ``known`` names are variables already."""
    paths = list(sys.path)
    with contextlib.suppress(ImportError, AttributeError):
        sys.path.insert(0, importlib.import_module("handiwork_skills.tools").libraries())
    try:
        checker: Any = importlib.import_module("pyflakes.checker")
    except (ImportError, SyntaxError):
        return  # this Python has none, or is too old for it
    finally:
        sys.path[:] = paths
    for message in checker.Checker(ast.parse(source), builtins=known).messages:
        if type(message).__name__ not in _HARMLESS:
            yield message.lineno, message.message % message.message_args


def type_faults(earlier: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, fault) of mypy in ``source``, which follows the cells ``earlier``, if the project has mypy."""
    if importlib.util.find_spec("mypy") is None:
        return
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--allow-redefinition"]
    options += ["--no-error-summary", "--no-pretty", "--no-color-output", "--hide-error-codes", "--check-untyped-defs"]
    options += [f"--disable-error-code={code}" for code in _HARMLESS_TYPES.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cells.py")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(earlier + source)
        environment = {**os.environ, "MYPYPATH": os.pathsep.join(SHELL.codenav_roots)}
        command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tempfile.gettempdir()}/mypy-cells", path]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=TYPES_TIMEOUT, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return
    before = earlier.count("\n")
    for line in ended.stdout.splitlines():
        match = re.fullmatch(r".*cells\.py:(\d+): error: (.*)", line)
        if match and int(match[1]) > before:
            yield int(match[1]) - before, match[2]


def advice(error: Any) -> str:
    """Return a line about an error of a cell: the names that there are, or how a function is called; "" for others.

    Before Python 3.10 an AttributeError has no object.
    """
    if isinstance(error, ImportError):
        return names_of(f"The module {error.name}", sys.modules.get(error.name or ""))
    if isinstance(error, AttributeError):
        holder = getattr(error, "obj", None)
        is_module = isinstance(holder, types.ModuleType)
        return names_of(f"The module {holder.__name__}" if is_module else f"The object {type(holder).__name__}", holder)
    match = _CALL.match(str(error)) if isinstance(error, TypeError) else None
    return call_of([part for part in match[1].split(".") if part not in ("__init__", "__new__")]) if match else ""


def names_of(label: str, holder: object) -> str:
    """Return the public names of a module or object, "" for None."""
    names = [] if holder is None else [name for name in dir(holder) if not name.startswith("_")]
    more = ", ..." if names[NAMES:] else ""
    return f"{label} has: {', '.join(names[:NAMES])}{more}" if names else ""


def call_of(path: list[str]) -> str:
    """Return how the function or class of this qualified name is called; "" if the notebook does not know it."""
    folders = tuple(f"{root}{os.sep}" for root in SHELL.codenav_roots)
    modules = [one for one in list(sys.modules.values()) if (getattr(one, "__file__", None) or "").startswith(folders)]
    for root in (SHELL.user_ns, *map(vars, modules)):
        found: Any = root.get(path[0])
        for part in path[1:]:
            found = getattr(found, part, None)
        try:
            line = f"It is called as {'.'.join(path)}{inspect.signature(found)}"
        except (TypeError, ValueError):
            continue  # missing, or written in C
        return f"{line}. {names_of('It', found)}" if isinstance(found, type) else line
    return ""


def begin(code: str, folders: list[str]) -> None:
    """Print the faults of the cell that is about to run; remember the variables as they are."""
    if not hasattr(SHELL, "codenav_roots"):
        SHELL.codenav_roots = list(dict.fromkeys(import_roots(folders)))
        SHELL.codenav_cells = ""
        sys.path[:0] = [root for root in SHELL.codenav_roots if root not in sys.path]
    SHELL.codenav_values, SHELL.codenav_error = values(), getattr(sys, "last_value", None)
    source = SHELL.transform_cell(code)
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return  # the cell itself will tell
    faults = [*name_faults(source, list(SHELL.user_ns)), *type_faults(SHELL.codenav_cells, source)]
    for line, fault in sorted(set(faults))[:PROBLEMS]:
        print(f"line {line}: {fault}")
    SHELL.codenav_cells += source.rstrip("\n") + "\n"


def end() -> None:
    """Print a line about the cell's error, then the variables that are new, gone or changed."""
    error = getattr(sys, "last_value", None)
    print("" if error is getattr(SHELL, "codenav_error", None) else advice(error))
    before, after = getattr(SHELL, "codenav_values", {}), values()
    changed = [name for name in after if before.get(name) != after[name]]
    for name in changed[:SHOWN]:
        value = after[name]
        print(f"{name} = {value[:VALUE]}" + (f" ... ({len(value)} characters)" if len(value) > VALUE else ""))
    if changed[SHOWN:]:
        print(f"... and {', '.join(changed[SHOWN:])}"[:VALUE])
    for name in [name for name in before if name not in after][:SHOWN]:
        print(f"{name} is deleted")


if SHELL is not None:
    if REQUEST:
        begin(REQUEST["code"], REQUEST["folders"])
    else:
        end()
