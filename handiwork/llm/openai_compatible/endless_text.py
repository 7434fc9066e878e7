"""Finds out that an answer repeats itself without end, as those of small models sometimes do."""

from __future__ import annotations

import re

SAME_LINES, KEPT_LINES = 60, 3
"""The number of lines in a row, the same but for digits and blank lines, after which an answer counts as endless, and
the number of them that are kept.
"""

PERIODIC, LONGEST_PERIOD = 1_500, 300
"""The characters at the end of a text that repeat one passage of at most so many characters if it is endless."""

_CHECKED = 100
"""Characters after which the end is looked at again."""

_DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"[^\W\d_]")


class EndlessText:
    """Reads a text piece by piece; ``kept`` is the number of characters before an endless end, its first part included.

    The end of an endless text repeats one passage, or is a list of lines of one shape. Rows of numbers are none.
    """

    def __init__(self) -> None:
        self.is_endless = False
        self.kept = 0
        self._line: list[str] = []
        self._size, self._shape, self._count, self._kept_lines = 0, "", 0, 0
        self._end, self._unchecked = "", 0

    def add(self, piece: str) -> None:
        """Read the next piece; after the end of an endless text nothing is read."""
        if self.is_endless:
            return
        *ends, rest = piece.split("\n")
        for end in ends:
            self._add_line("".join([*self._line, end]))
            self._line = []
        self._line.append(rest)
        self._end = (self._end + piece)[-PERIODIC:]
        self._unchecked += len(piece)
        if self._unchecked >= _CHECKED and not self.is_endless:
            self._unchecked = 0
            self._check_period()

    def _add_line(self, line: str) -> None:
        self._size += len(line) + 1
        shape = _DIGITS.sub("0", line.strip())
        if not shape or self.is_endless:
            return
        self._count = self._count + 1 if shape == self._shape else 1
        self._shape = shape
        self._kept_lines = self._size if self._count <= KEPT_LINES else self._kept_lines
        if self._count >= SAME_LINES and _LETTER.search(shape):
            self.is_endless, self.kept = True, self._kept_lines

    def _check_period(self) -> None:
        end = self._end
        if len(end) < PERIODIC:
            return
        before = end.rfind(end[-LONGEST_PERIOD:], 0, -1)
        period = len(end) - LONGEST_PERIOD - before
        if before >= 0 and period <= LONGEST_PERIOD and end[period:] == end[:-period]:
            read = self._size + sum(map(len, self._line))
            self.is_endless, self.kept = True, read - len(end) + period
