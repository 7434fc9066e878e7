"""The structure of source files: their elements, skeletons, and the lines that a model's locations name.

Python is read by its syntax tree, every other language by keyword, bracket and indentation.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, cast

from handiwork.agents.repair.check import is_test
from handiwork.agents.repair.files import CODE
from handiwork.agents.repair.functions import bare, constants, every_class, every_function, outline

LONG_VALUE, VALUE_END = 30, 10
"""Lines of an assignment that a skeleton shows whole, and of each end of a longer one."""

PARSED = 256
"""The number of parsing results kept: every step recomputes the artefacts of all stages."""

LONGEST_RANGE = 200
"""Lines of a range that a location may be."""

_NO_TESTS = {"check", "checks", "verify", "spec", "specs"}
"""Names of files that are protected like tests, and may be programs."""

Kind = Literal["class", "function", "variable", "line"]

_LOCATION = re.compile(r"^[\s*`-]*(class|function|method|variable|line)s?\s*:\s*`?([\w.:$~-]+)(.*)", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,7})(?:\s*-\s*(\d{1,7}))?")
_DECORATION = " \t`*#:-'\""
_RETURN = re.compile(r"\r(?!\n)")
"""A carriage return alone, which ends a line for Python, and here does not."""
_OTHER_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)")
"""Characters that end a line for ``str.splitlines`` only, like the form feeds of older C."""

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class Span(NamedTuple):
    """Lines ``first`` to ``last`` of a file, 0-based and inclusive."""

    first: int
    last: int


class Location(NamedTuple):
    """A place that the model names: an element by its name, or a line by its number, 1-based."""

    kind: Kind
    name: str


def programs(listed: Iterable[str]) -> list[str]:
    """Return the paths of programs, without tests if there are others."""
    code = [path for path in listed if PurePosixPath(path).suffix.lower() in CODE]
    return [path for path in code if not is_test(path) or PurePosixPath(path).stem in _NO_TESTS] or code


def parse_python(path: str, text: str) -> ast.Module | None:
    """Return the syntax tree of a file of Python; None for other files, and for one that is not valid."""
    if PurePosixPath(path).suffix not in (".py", ".pyi"):
        return None
    try:
        return ast.parse(_RETURN.sub(" ", text.removeprefix("\ufeff")))
    except _UNREADABLE:
        return None


@lru_cache(maxsize=PARSED)
def is_valid(path: str, text: str) -> bool:
    """Return whether the file has no syntax error; only Python is checked."""
    return PurePosixPath(path).suffix != ".py" or parse_python(path, text) is not None


@lru_cache(maxsize=PARSED)
def elements(path: str, text: str) -> Mapping[str, Sequence[Span]]:
    """Return the classes, functions and variables of a file by name; a method is named ``Class.method``.

    A name may have several: a property's getter and setter, or overloads.
    """
    found: dict[str, list[Span]] = {}
    if (tree := parse_python(path, text)) is not None:
        for name, span in _python_elements(tree.body, ""):
            found.setdefault(name, []).append(span)
        return found
    text = _OTHER_ENDS.sub(" ", text)
    for name, lines in (*every_function(text), *constants(text).items(), *every_class(text)):
        found.setdefault(name, []).append(Span(lines.first, lines.last))
    return found


@lru_cache(maxsize=PARSED)
def skeleton(path: str, text: str) -> str:
    """Return the file without the bodies of its functions; long assignments are cut to their ends."""
    if (tree := parse_python(path, text)) is not None:
        try:
            return "\n".join(_python_skeleton(tree.body, text.split("\n")))
        except _UNREADABLE:
            pass
    lines = text.splitlines()
    parts = [(place.first, outline(place.text)) for _, place in every_function(text)]
    parts += [(place.first, lines[place.first].rstrip()) for _, place in every_class(text)]
    parts += [(place.first, "\n".join(_cut(place.text.split("\n")))) for place in constants(text).values()]
    return "\n".join(part for _, part in sorted(parts))


def parse_locations(reply: str, paths: Sequence[str]) -> dict[str, list[Location]]:
    """Return the locations of a reply by file: a line with a path, then lines like ``function: Class.method``."""
    found: dict[str, list[Location]] = {}
    path = paths[0] if len(paths) == 1 else None
    for line in reply.splitlines():
        if match := _LOCATION.match(line):
            kind = match[1].lower().replace("method", "function")
            if path is not None:
                names = _line_numbers(match[2] + match[3]) if kind == "line" else [match[2]]
                found.setdefault(path, []).extend(Location(cast("Kind", kind), name) for name in names)
        elif named := named_path(line, paths):
            path = named
        elif PurePosixPath(line.strip(_DECORATION)).suffix in CODE:
            path = None  # the locations below are in a file that was not shown
    return found


def named_path(line: str, paths: Sequence[str]) -> str | None:
    """Return the path that a line of a reply names, which may lack its first folders or have some too many."""
    words = line.strip(_DECORATION)
    for word in (words, *(word.strip("*'\",:;()") for word in re.split(r"[\s`]+", words))):
        if word in paths:
            return word
        same = [path for path in paths if path.endswith(f"/{word}") or word.endswith(f"/{path}")] if word else []
        if len(same) == 1:
            return same[0]
    return None


def spans_of(path: str, text: str, locations: Sequence[Location], context: int) -> list[Span]:
    """Return the lines of the locations with ``context`` lines around each, in order and without overlaps."""
    known = elements(path, text)
    end = len(text.split("\n")) - 1
    spans: list[Span] = []
    for kind, name in locations:
        if kind == "line":
            spans += [Span(int(name) - 1, int(name) - 1)] if 0 < int(name) <= end + 1 else []
        elif name in known:
            spans += known[name]
        else:
            spans += [span for other, same in known.items() if bare(other) == bare(name) for span in same]
    return _merged(Span(max(0, span.first - context), min(end, span.last + context)) for span in spans)


def code(text: str, spans: Sequence[Span], *, numbered: bool = False) -> str:
    """Return the lines of the spans, 1-based numbers before them if ``numbered``; "..." stands for the others."""
    lines = text.split("\n")
    parts = [
        "\n".join(f"{n + 1}|{lines[n]}" if numbered else lines[n] for n in range(span.first, span.last + 1))
        for span in spans
    ]
    return "\n...\n".join(parts)


def tree(paths: Iterable[str], most: int) -> str:
    """Return the paths as an indented tree, about ``most`` characters of it."""
    lines: list[str] = []
    before: tuple[str, ...] = ()
    size = 0
    for path in sorted(paths):
        parts = PurePosixPath(path).parts
        same = next((n for n, pair in enumerate(zip(before, parts, strict=False)) if pair[0] != pair[1]), len(before))
        names = [*(f"{folder}/" for folder in parts[:-1]), parts[-1]]
        new = [f"{'    ' * depth}{name}" for depth, name in enumerate(names) if depth >= same]
        size += sum(len(line) + 1 for line in new)
        if size > most:
            return "\n".join([*lines, "..."])
        lines += new
        before = parts[:-1]
    return "\n".join(lines)


def fit(texts: Mapping[str, str], most: int) -> dict[str, str]:
    """Return the texts without the last ones until they have ``most`` characters; a single one is cut to its head."""
    kept = dict(texts)
    while len(kept) > 1 and sum(map(len, kept.values())) > most:
        kept.popitem()
    return {path: text if len(text) <= most else text[:most] for path, text in kept.items()}


def _line_numbers(text: str) -> list[str]:
    """Return the numbers of a text like "12" or "12-15, 20"; of a long range the first LONGEST_RANGE."""
    ranges = ((int(first), int(last or first)) for first, last in _RANGE.findall(text))
    return [str(number) for first, last in ranges for number in range(first, min(last, first + LONGEST_RANGE) + 1)]


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Span(merged[-1].first, max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return merged


def _python_elements(body: Sequence[ast.stmt], prefix: str) -> Iterable[tuple[str, Span]]:
    for node in body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        span = Span(first, (node.end_lineno or node.lineno) - 1)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{prefix}{node.name}", span
            case ast.ClassDef():
                yield f"{prefix}{node.name}", span
                yield from _python_elements(node.body, f"{prefix}{node.name}.")
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from ((f"{prefix}{target.id}", span) for target in targets if isinstance(target, ast.Name))
            case _:
                pass


def _python_skeleton(body: Sequence[ast.stmt], lines: Sequence[str]) -> Iterable[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                members = list(_python_skeleton(node.body, lines)) if isinstance(node, ast.ClassDef) else []
                node.body = [ast.Expr(ast.Constant(...))]
                header = ast.unparse(node).split("\n")
                yield from header[:-1]
                yield from (f"    {line}" if line else "" for line in members or ["..."])
            case ast.Assign() | ast.AnnAssign():
                source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                yield from _cut(textwrap.dedent(" " * node.col_offset + source.lstrip()).split("\n"))
            case _:
                pass


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= LONG_VALUE else [*lines[:VALUE_END], "...", *lines[-VALUE_END:]]
