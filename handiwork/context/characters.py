"""Characters that a reader does not see, or that change the order in which text is read: found, and shown as escapes.

A text that a user judges must show all that a model reads in it. The categories are those of the Unicode Character
Database; the letters of HIDDEN_LETTERS and the variation selectors are invisible although their categories are not.
"""

from __future__ import annotations

import unicodedata
from collections import Counter

JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"
EMOJI_LETTERS = frozenset("\u203c\u2049\u2139\u3030")
"""The characters that EMOJI_STYLE makes emoji although their categories are no symbols', as in an information sign."""

HIDDEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without a glyph: fillers of Hangul, the grapheme joiner, the blank of Braille."""

HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})

_KINDS = (
    ("bidirectional control", ("\u061c", "\u061c")),
    ("bidirectional control", ("\u200e", "\u200f")),
    ("bidirectional control", ("\u202a", "\u202e")),
    ("bidirectional control", ("\u2066", "\u2069")),
    ("zero-width character", ("\u200b", "\u200d")),
    ("zero-width character", ("\u2060", "\u2064")),
    ("zero-width character", ("\ufeff", "\ufeff")),
    ("variation selector", ("\ufe00", "\ufe0f")),
    ("variation selector", ("\U000e0100", "\U000e01ef")),
    ("tag character", ("\U000e0000", "\U000e007f")),
    ("control character", ("\x00", "\x9f")),
)


def visible(text: str) -> str:
    """Return the text with an escape like \\u200b for every hidden character; emoji keep their joiners."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escape(letter) if _is_hidden(text, number, letter) else letter for number, letter in enumerate(text)
    )


def one_line(text: str) -> str:
    """Return a name or a message as ``visible`` does, with its newlines and tabs as escapes too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def hidden_kinds(text: str) -> list[str]:
    """Return the kinds of hidden characters, each with its count and first line, like "2 tag characters (line 3)"."""
    counts: Counter[str] = Counter()
    first: dict[str, int] = {}
    for number, letter in enumerate(text):
        if _is_hidden(text, number, letter):
            kind = next((name for name, (low, high) in _KINDS if low <= letter <= high), "invisible character")
            counts[kind] += 1
            first.setdefault(kind, text.count("\n", 0, number) + 1)
    return [f"{count} {kind}{'s' * (count > 1)} (line {first[kind]})" for kind, count in counts.items()]


def _is_hidden(text: str, number: int, letter: str) -> bool:
    if letter in "\n\t" or (letter.isascii() and letter.isprintable()):
        return False
    if letter in (EMOJI_STYLE, JOINER):
        return not _is_in_emoji(text, number)
    is_selector = "\ufe00" <= letter <= EMOJI_STYLE or "\U000e0100" <= letter <= "\U000e01ef"
    return is_selector or letter in HIDDEN_LETTERS or unicodedata.category(letter) in HIDDEN_CATEGORIES


def _is_in_emoji(text: str, number: int) -> bool:
    """Return whether a joiner or selector is placed as in an emoji: after a symbol, a joiner also before one."""
    before = text[number - 1] if number else ""
    after = text[number + 1 : number + 2]
    if text[number] == EMOJI_STYLE:
        return _is_symbol(before) or before in EMOJI_LETTERS or (before in "#*0123456789" and after == "\u20e3")
    return (_is_symbol(before) or before == EMOJI_STYLE) and _is_symbol(after)


def _is_symbol(letter: str) -> bool:
    return len(letter) == 1 and unicodedata.category(letter) in ("So", "Sk", "Sm")


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
