"""Edits that name a line or a function, so that a small model has no text to copy wrongly."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from dataclasses import dataclass

LINES = 400
"""Maximum number of lines offered."""

_HEADER = re.compile(r"^[ \t]*(?:[\w@]+[ \t]+)*?(?:def|func|fn|function)[ \t]+(?:\([^)]*\)[ \t]*)?(\w+)")


@dataclass(frozen=True, slots=True)
class LineChoice:
    """Replaceable lines: ``text`` is the model's view of lines ``first`` to ``last``, 0-based, inclusive."""

    text: str
    first: int
    last: int


def choices(text: str) -> dict[str, LineChoice]:
    """Return a file's replaceable lines by their text without indentation; a repeated line includes the next ones."""
    lines = text.splitlines()
    stripped = [line.strip() for line in lines]
    count = Counter(stripped)
    by_text: dict[str, LineChoice] = {}
    for number, line in enumerate(stripped[:LINES]):
        last = number
        while line and count[line] > 1 and last + 1 < len(stripped):
            last += 1
            line = f"{line}\n{stripped[last]}"
            count[line] += sum(_is_block_at(stripped, line, other) for other in range(len(stripped)))
        if line and count[line] == 1:
            by_text[line] = LineChoice(line, number, last)
    return by_text


def functions(text: str) -> dict[str, LineChoice]:
    """Return the functions of a file by name, the first of each name, with ``text`` as in the file.

    A function starts at the line with its keyword, like def or func, and its name; it ends with the last line that is
    indented deeper, or the closing bracket or ``end`` after it.
    """
    lines = text.splitlines()
    by_name: dict[str, LineChoice] = {}
    for number, line in enumerate(lines):
        if (header := _HEADER.match(line)) and header[1] not in by_name:
            last = _end(lines, number)
            by_name[header[1]] = LineChoice("\n".join(lines[number : last + 1]), number, last)
    return by_name


def _end(lines: list[str], first: int) -> int:
    depth, last = _indent(lines[first]), first
    for number in range(first + 1, len(lines)):
        line = lines[number].strip()
        if line and _indent(lines[number]) <= depth:
            if line.startswith(")"):
                continue  # closes a signature of several lines
            return number if re.match(r"[}\]]|end\b", line) else last
        if line:
            last = number
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_block_at(lines: list[str], block: str, start: int) -> bool:
    return "\n".join(lines[start : start + block.count("\n") + 1]) == block


def replacement(text: str, choice: LineChoice, new: str) -> tuple[str, str]:
    """Return (old, new) for an edit that replaces the choice by ``new``, reindented; old occurs once in the text."""
    lines = text.splitlines(keepends=True)
    indent = lines[choice.first][: len(lines[choice.first]) - len(lines[choice.first].lstrip())]
    ending = "\n" if lines[choice.last].endswith("\n") else ""
    indented = textwrap.indent(_dedent(new, len(indent)), indent) + ending if new.strip() else ""
    first, last = choice.first, choice.last + 1
    while _is_repeated(text, "".join(lines[first:last])):
        first, last = max(0, first - 1), min(len(lines), last + 1)
    before, after = "".join(lines[first : choice.first]), "".join(lines[choice.last + 1 : last])
    return "".join(lines[first:last]), before + indented + after


def _is_repeated(text: str, part: str) -> bool:
    # Not str.count, which misses overlaps: it counts "b\nb" once in "b\nb\nb".
    return text.find(part) != text.rfind(part)


def _dedent(new: str, indent: int) -> str:
    """Return the text dedented to the margin, even if only its later lines have the file's indentation."""
    new = textwrap.dedent(new.strip("\n")).rstrip()
    first, _, rest = new.partition("\n")
    if not rest or first != first.lstrip() or first.endswith((":", "{", "(", "[", ",")):
        return new
    depth = min((len(line) - len(line.lstrip()) for line in rest.splitlines() if line.strip()), default=0)
    if indent and depth >= indent:
        rest = "\n".join(line[indent:] for line in rest.splitlines())
    return f"{first}\n{rest}"
