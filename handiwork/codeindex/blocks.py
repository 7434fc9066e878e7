"""Blocks of source files, and the words by which they are found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

BlockType = Literal["FUNCTION", "CLASS", "METHOD", "ASSIGNMENT", "IMPORT", "CONDITIONAL", "DOCUMENTATION", "OTHER"]
TYPES: tuple[BlockType, ...] = get_args(BlockType)

BLOCKS = 10_000
"""Maximum number of blocks of a file."""
NAME, PROTOTYPE, DOCSTRING = 200, 500, 4_000
"""Maximum characters of these fields; the rest is cut off."""

_IDENTIFIER = re.compile(r"\w+")
_SUB_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FOREIGN_WORD = re.compile(r"[^\W\d_]+|\d+")
_LONGEST_IDENTIFIER = 200
_CACHED = 200_000
_UNINDEXED = re.compile(r"\W*index:\s*false\W*\Z")


class Block(NamedTuple):
    """A piece of a file: lines ``first`` to ``last``, 1-based and inclusive.

    ``name`` is that of its definition, with the classes around a method ("Stack.push"); "" without a definition.
    """

    type: BlockType
    first: int
    last: int
    name: str = ""
    prototype: str = ""
    docstring: str = ""


def decode(data: bytes) -> str | None:
    """Return a source file's text with newlines as line ends; None if it is binary.

    It is UTF-8, UTF-16 with a byte order mark, or else Latin-1, which has a character for every byte.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data:
        return None
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def is_excluded(text: str) -> bool:
    """Return whether the first line is a comment that says ``index: false``."""
    return _UNINDEXED.match(text[:200].partition("\n")[0]) is not None


def identifiers(text: str) -> list[str]:
    """Return the identifiers and words of a text, without very long ones."""
    return [word for word in _IDENTIFIER.findall(text) if len(word) <= _LONGEST_IDENTIFIER]


def sub_words(identifier: str) -> list[str]:
    """Return the parts of a camelCase or snake_case identifier: HTTPServer2 has HTTP, Server and 2.

    Only English letters have parts by their case.
    """
    return (_SUB_WORD if identifier.isascii() else _FOREIGN_WORD).findall(identifier)


class Vocabulary:
    """Splits the lines of a file into words; remembers the sub-words of identifiers."""

    def __init__(self) -> None:
        self._split: dict[str, str] = {}

    def spaced(self, text: str) -> str:
        """Return the sub-words of a text, separated by spaces."""
        return " ".join([self._sub_words(word) for word in identifiers(text)])

    def names(self, text: str) -> str:
        """Return each identifier of a text once, whole, and its sub-words if it has several."""
        whole = dict.fromkeys(identifiers(text))
        parts = {part: None for word in whole for part in self._sub_words(word).split(" ") if part}
        return " ".join({**whole, **parts})

    def _sub_words(self, identifier: str) -> str:
        known = self._split.get(identifier)
        if known is None:
            if len(self._split) >= _CACHED:
                self._split.clear()
            known = self._split[identifier] = " ".join(sub_words(identifier))
        return known


def clipped(block: Block, lines: int) -> Block:
    """Return the block with its fields cut to their limits, and its lines within a file of ``lines`` lines."""
    first = min(max(block.first, 1), max(lines, 1))
    last = min(max(block.last, first), max(lines, 1))
    return Block(block.type, first, last, block.name[:NAME], block.prototype[:PROTOTYPE], block.docstring[:DOCSTRING])


def room_for(text: str) -> int:
    """Return how many characters the blocks of a text may have in all."""
    return 10 * len(text) + 10_000


def collapse(text: str) -> str:
    """Return the text in one line."""
    return " ".join(text.split())


def code_of(lines: Sequence[str], block: Block) -> str:
    """Return the block's lines of a file."""
    return "\n".join(lines[block.first - 1 : block.last])
