"""The blocks of a file in any language, each with its words. Those of Markdown and LaTeX are its sections.

A new section begins at a heading, once the one before is long enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from handiwork.codeindex.blocks import BLOCKS, Block, Vocabulary, clipped, room_for
from handiwork.codeindex.python_source import python_blocks, python_grammar_blocks
from handiwork.codeindex.tree_source import tree_blocks

SHORTEST, LONGEST = 100, 1_000
"""Words and marks of a section that ends at the next heading, and of one that ends at the next line."""

_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)[\s#]*\Z")
_LATEX_HEADING = re.compile(
    r"\s*\\(?:part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^]]*\])?\{((?:[^{}]|\{[^{}]*\})*)\}.*\Z"
)
_FENCE = re.compile(r" {0,3}(```|~~~)")
_WORD = re.compile(r"\w+|[^\w\s]")

_WORDS = 20_000
"""Characters of one line whose words are found."""


def read_blocks(language: str, text: str, vocabulary: Vocabulary) -> list[tuple[str | int, ...]]:
    """Return the blocks of a file, each with its words and names, none once those of all are much more than the file.

    A file with too many blocks has BLOCKS and one here, so that the caller can tell. Blocks overlap if they are within
    each other, or in one line.
    """
    lines, room = text.split("\n"), room_for(text)
    words = [vocabulary.spaced(line[:_WORDS]) for line in lines]
    answer: list[tuple[str | int, ...]] = []
    for block in blocks_of(language, text)[: BLOCKS + 1]:
        block = clipped(block, len(lines))
        span = slice(block.first - 1, block.last)
        found = " ".join(words[span])[: max(room, 0)]
        names = vocabulary.names(found and "\n".join(line[:_WORDS] for line in lines[span]))
        room -= len(found) + len(names)
        answer.append((*block, found, names))
    return answer


def blocks_of(language: str, text: str) -> list[Block]:
    """Return the blocks of a file by the rules of its language; one whose reader fails is one block."""
    if language == "markdown":
        return markdown_blocks(text)
    if language == "latex":
        return latex_blocks(text)
    if language == "python":
        with suppress(Exception):  # hostile files find the bugs of parsers: the grammar reads these
            return python_blocks(text)
    blocks = None
    with suppress(Exception):
        blocks = python_grammar_blocks(text) if language == "python" else tree_blocks(language, text)
    return [Block("OTHER", 1, text.count("\n") + 1)] if blocks is None else blocks


def markdown_blocks(text: str) -> list[Block]:
    """Return the sections of a document; the name of each is its first heading, its prototype all of them."""
    return list(_sections(text.split("\n"), _HEADING, _FENCE))


def latex_blocks(text: str) -> list[Block]:
    """Return the sections of a LaTeX document, in the form of Markdown's."""
    return list(_sections(text.split("\n"), _LATEX_HEADING))


def _sections(lines: list[str], title: re.Pattern[str], fences: re.Pattern[str] | None = None) -> Iterator[Block]:
    """Yield the sections between lines that match ``title``, but not between two ``fences``."""
    start, words, fence = 1, 0, ""
    headings: list[str] = []
    for number, line in enumerate(lines, 1):
        mark = fences and fences.match(line)
        if mark is not None and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        heading = None if fence else title.match(line)
        if number > start and ((heading is not None and words > SHORTEST) or words > LONGEST):
            yield from _section(lines, start, number - 1, headings)
            start, words, headings = number, 0, []
        if heading is not None and heading[1]:
            headings.append(heading[1])
        words += sum(1 for _ in _WORD.finditer(line))
    yield from _section(lines, start, len(lines), headings)


def _section(lines: list[str], first: int, last: int, headings: list[str]) -> Iterator[Block]:
    while last > first and not lines[last - 1].strip():
        last -= 1
    if lines[last - 1].strip():
        yield Block("DOCUMENTATION", first, last, headings[0] if headings else "", " / ".join(headings))
