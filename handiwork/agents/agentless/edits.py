"""Search/replace edits of a candidate: whole lines of the shown code, and the lines that take their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from handiwork.agents.agentless.structure import Span, is_valid, named_path
from handiwork.agents.repair.edits import Texts

_SEARCH, _MIDDLE, _END = (re.compile(pattern) for pattern in (r"<{5,9} ?SEARCH\s*$", r"={5,9}\s*$", r">{5,9} ?REPLACE"))


class SearchReplace(NamedTuple):
    """Replaces the lines ``search`` of a file by the lines ``new``."""

    path: str
    search: tuple[str, ...]
    new: tuple[str, ...]


def parse_edits(reply: str, paths: Sequence[str]) -> list[SearchReplace]:
    """Return the edits of a reply; the last line before a block that names a path says which file it is in.

    Skips a block without its end or without a known file, and a first line ``...`` of either half.
    """
    edits: list[SearchReplace] = []
    path = paths[0] if len(paths) == 1 else None
    old: list[str] | None = None
    new: list[str] | None = None
    for line in reply.replace("\r\n", "\n").split("\n"):
        if _SEARCH.match(line):
            old, new = [], None
        elif old is None:
            path = named_path(line, paths) or path
        elif new is None and _MIDDLE.match(line):
            new = []
        elif new is not None and _END.match(line):
            if path is not None:
                edits.append(SearchReplace(path, _without_dots(old), _without_dots(new)))
            old = new = None
        else:
            (old if new is None else new).append(line)
    return edits


def apply_edits(text: str, edits: Iterable[SearchReplace], spans: Sequence[Span]) -> str:
    """Apply the edits whose lines occur exactly once inside the spans, skip the others, and return the text.

    Lines that occur nowhere are looked for without the blanks at their ends, which models leave out. The file keeps its
    line ends, and the blanks of lines with text that stay. Of overlapping edits, only the first is applied.
    """
    lines = text.split("\n")
    plain = [line.removesuffix("\r") for line in lines]
    trimmed = [line.rstrip() for line in lines]
    places: list[tuple[Span, SearchReplace]] = []
    for edit in edits:
        found = _places(plain, edit.search, spans) or _places(trimmed, tuple(map(str.rstrip, edit.search)), spans)
        if len(found) == 1 and not any(_overlap(found[0], place) for place, _ in places):
            places.append((found[0], edit))
    for place, edit in sorted(places, reverse=True):
        ending = "\r" if lines[place.first].endswith("\r") else ""
        same = zip(edit.search, plain[place.first : place.last + 1], strict=True)
        kept = {line: old for line, old in same if line.strip()}
        lines[place.first : place.last + 1] = [kept.get(line, line) + ending for line in edit.new]
    return "\n".join(lines)


def edited_texts(reply: str, files: Mapping[str, str], spans: Mapping[str, Sequence[Span]]) -> Texts:
    """Return the files that a reply's edits change; none if one gets a syntax error or only blank lines change.

    A file that had an error before may have one: it may be written for another version of Python.
    """
    edits = parse_edits(reply, list(spans))
    changed: Texts = {}
    for path in dict.fromkeys(edit.path for edit in edits):
        text = apply_edits(files[path], [edit for edit in edits if edit.path == path], spans[path])
        if text.split() != files[path].split() or _code(text) != _code(files[path]):
            changed[path] = text
    is_broken = any(is_valid(path, files[path]) and not is_valid(path, text) for path, text in changed.items())
    return {} if is_broken else changed


def _code(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _without_dots(lines: list[str]) -> tuple[str, ...]:
    return tuple(lines[1:] if lines and lines[0].strip() == "..." else lines)


def _places(lines: Sequence[str], search: tuple[str, ...], spans: Sequence[Span]) -> list[Span]:
    """Return the places inside the spans where the lines stand."""
    count = len(search)
    if not any(line.strip() for line in search):
        return []
    starts = (start for span in spans for start in range(span.first, span.last + 2 - count))
    return [Span(n, n + count - 1) for n in starts if tuple(lines[n : n + count]) == search]


def _overlap(one: Span, other: Span) -> bool:
    return one.first <= other.last and other.first <= one.last
