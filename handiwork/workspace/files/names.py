"""Names and texts for display: a name cannot pose as several names, and no text as another."""

from __future__ import annotations

import re
from collections.abc import Sequence

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)
"""Characters that hide or reorder text; not the joiners and the emoji style, which emoji and scripts need."""

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def quoted(name: str) -> str:
    """Return a file name as git writes it: in double quotes if it has a quote, a backslash or a nonprintable character.

    Nonprintable characters, such as terminal escapes and marks of text direction, become C escapes or the octal
    numbers of their bytes.
    """
    if name.isprintable() and '"' not in name and "\\" not in name:
        return name
    return f'"{"".join(map(_escape, name))}"'


def quoted_list(paths: Sequence[str], most: int) -> str:
    """Return the first ``most`` paths in quotes where they need them, and the number of the others."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(map(quoted, paths[:most])) + more


def _escape(letter: str) -> str:
    if ord(letter) in _ESCAPES:
        return _ESCAPES[ord(letter)]
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode(errors="surrogateescape"))
