"""Replaces one exact piece of a file's bytes and leaves all others unchanged."""

from __future__ import annotations

import difflib
import heapq
import re
from collections import Counter
from dataclasses import dataclass

from ..errors import ActionError
from ..output import decode
from .files import read_bytes, write_bytes

_CONTEXT = 3
_MAX_SEARCHED = 20_000  # lines searched for a similar passage
_MAX_WIDTH = 200
_MAX_SHOWN = 12
_MAX_PLACES = 20
_SIMILAR = 0.5
_WORDLESS = re.compile(rb"[^\w\x80-\xff]*")
_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that was made: its unified diff, its first line, and the file's content before and after it."""

    diff: str
    line: int
    before: bytes
    after: bytes


def edit_file(path: str, name: str, old: str, new: str) -> Edit:
    """Replace ``old``, which must occur exactly once in the file ``path``, by ``new``; the diff names it ``name``.

    In a file whose lines end in CR LF, line feeds of the texts stand for that.
    Raises ActionError: not_found, not_unique, bad_edit, not_text, or an id for an error of the file system.
    """
    if not old:
        raise ActionError("bad_edit", "The text to replace is empty; to make a new file, write it.")
    if old == new:
        raise ActionError("bad_edit", "The old and the new text are the same: there is nothing to edit.")
    target, replacement = _encode(old), _encode(new)
    data = read_bytes(path)
    target, replacement = _with_line_ends(data, target, replacement)
    position = data.find(target)
    if position < 0:
        raise ActionError("not_found", _not_found(name, data, old))
    if data.find(target, position + 1) >= 0:
        raise ActionError("not_unique", _not_unique(name, data, target))
    if target.isascii() and not replacement.isascii() and not _is_utf8(data):
        raise ActionError(
            "not_text", f"{name} is not UTF-8, and the new text is not ASCII: edit it by a script in its own encoding."
        )
    changed = data[:position] + replacement + data[position + len(target) :]
    write_bytes(path, changed)
    return _diff(name, data, changed)


def deleted_lines(before: bytes, after: bytes) -> tuple[list[bytes], int]:
    """Return the lines of ``before``, in their order, that ``after`` has less often, and the number of all lines."""
    lines = _lines(before)
    remaining = Counter(_lines(after))
    deleted: list[bytes] = []
    for line in lines:
        if remaining[line] > 0:
            remaining[line] -= 1
        else:
            deleted.append(line)
    return deleted, len(lines)


def deleted_passages(before: bytes, after: bytes) -> list[bytes]:
    """Return the deleted lines that have words, with the lines without words that belong to them.

    ``after`` may have a line like "}" or the end of a comment elsewhere, so that it does not count as deleted; without
    it, the passage would be broken code.
    """
    remaining = Counter(_lines(after))
    shown: list[bytes] = []
    opening, inside = b"", False
    for line in _lines(before):
        remaining[line] -= 1
        is_wordless = bool(_WORDLESS.fullmatch(line))
        opens = is_wordless and line.lstrip().startswith(b"/*")
        if not is_wordless:
            inside = remaining[line] < 0
        if inside and not opens:
            shown += [*filter(None, [opening]), line]
        opening = line if opens else b""
    return shown or deleted_lines(before, after)[0]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_line_ends(data: bytes, target: bytes, replacement: bytes) -> tuple[bytes, bytes]:
    has_crlf = data[: data.find(b"\n") + 1].endswith(b"\r\n")
    if target not in data and b"\r\n" in data and b"\r" not in target:
        target, has_crlf = target.replace(b"\n", b"\r\n"), True
    if has_crlf and b"\n" not in target.replace(b"\r\n", b""):
        replacement = replacement.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return target, replacement


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ActionError("not_text", f"The text has a lone surrogate at character {error.start}.") from error


def _diff(name: str, before: bytes, after: bytes) -> Edit:
    """Return the change as one hunk: only one piece was replaced, so a search for more is needless."""
    old, new = _lines(before), _lines(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    same = 0
    while same < min(len(old), len(new)) - start and old[-1 - same] == new[-1 - same]:
        same += 1
    first = max(0, start - _CONTEXT)
    after_hunk = old[len(old) - same :][:_CONTEXT]
    context = start - first + len(after_hunk)
    removed, added = old[start : len(old) - same], new[start : len(new) - same]
    ranges = f"-{_range(first, len(removed) + context)} +{_range(first, len(added) + context)}"
    marked = [(" ", old[first:start]), ("-", removed), ("+", added), (" ", after_hunk)]
    body = [mark + _format_line(line) for mark, lines in marked for line in lines]
    return Edit("\n".join([f"--- {name}", f"+++ {name}", f"@@ {ranges} @@", *body]) + "\n", start + 1, before, after)


def _lines(data: bytes) -> list[bytes]:
    """Return the lines with their ends; only a newline ends a line."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _format_line(line: bytes) -> str:
    return decode(line[:-1]) if line.endswith(b"\n") else f"{decode(line)}\n{_NO_NEWLINE}"


def _range(first: int, count: int) -> str:
    return f"{first + 1 if count else first},{count}"


def _not_unique(name: str, data: bytes, target: bytes) -> str:
    lines: list[int] = []
    total = 0
    position = data.find(target)
    while position >= 0:
        total += 1
        if len(lines) < _MAX_PLACES:
            lines.append(data.count(b"\n", 0, position) + 1)
        position = data.find(target, position + 1)
    numbers = ", ".join(map(str, lines)) + (", ..." if total > len(lines) else "")
    return f"The text to replace occurs {total} times in {name}, on lines {numbers}. Add lines around it to tell which."


def _not_found(name: str, data: bytes, old: str) -> str:
    message = f"The text to replace does not occur in {name} exactly as given."
    lines = decode(data).split("\n")
    old_lines = old.strip("\n").split("\n")
    start = _most_similar(lines, old_lines)
    if start is None:
        return f"{message} Nothing in it is similar; read the file."
    similar = lines[start : start + min(len(old_lines), _MAX_SHOWN)]
    numbered = [f"{start + number + 1}|{line[:_MAX_WIDTH]}" for number, line in enumerate(similar)]
    return "\n".join([f"{message} The most similar lines are:", *numbered])


def _most_similar(lines: list[str], old_lines: list[str]) -> int | None:
    """Return the index of the first line of the passage most like ``old_lines``, None if none is similar."""
    anchor = max(range(min(len(old_lines), _MAX_SHOWN)), key=lambda index: len(old_lines[index].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(old_lines[anchor].strip()[:_MAX_WIDTH])

    def bound(index: int) -> float:
        matcher.set_seq1(lines[index].strip()[:_MAX_WIDTH])
        return matcher.quick_ratio() if matcher.real_quick_ratio() > _SIMILAR else 0.0

    candidates = heapq.nlargest(_MAX_PLACES, range(min(len(lines), _MAX_SEARCHED)), key=bound)
    starts = [max(0, index - anchor) for index in candidates if bound(index) > _SIMILAR]
    passage = "\n".join(old_lines[:_MAX_SHOWN])[: _MAX_WIDTH * _MAX_SHOWN]

    def likeness(start: int) -> float:
        candidate = "\n".join(lines[start : start + min(len(old_lines), _MAX_SHOWN)])[: _MAX_WIDTH * _MAX_SHOWN]
        return difflib.SequenceMatcher(None, candidate, passage, autojunk=False).ratio()

    best = max(starts, key=likeness, default=None)
    return best if best is not None and likeness(best) >= _SIMILAR else None
