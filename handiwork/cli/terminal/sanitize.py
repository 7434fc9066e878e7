"""Makes the text of agents and programs safe to print on the user's terminal."""

from __future__ import annotations

import re

from rich.ansi import AnsiDecoder
from rich.style import Style
from rich.text import Text

from handiwork.workspace.files.names import UNSEEN

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COLOURED_END = re.compile(r"\r((?:\x1b\[[0-9;]*m)*\n)")
_COLOURED_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=(?:\x1b\[[0-9;]*m)*(?:[^\n\r\x1b]|\x1b(?!\[[0-9;]*m)))", re.MULTILINE)
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, titles
    r"|\x1b[ -/]*[0-~]"
    r"|\x1b"  # alone: what is left after a removal must not become a sequence
)
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n\r])", re.MULTILINE)


def plain(text: str) -> str:
    """Return the text as a reader would see it: control sequences removed, control characters escaped.

    Keep only the last version of a line that a program overwrote with carriage returns. Escape characters that
    change the writing direction or are invisible too, since they can disguise text.
    """
    text = _SEQUENCE.sub(lambda match: _escape(match[0]) if match[0] == "\x1b" else "", text).replace("\r\n", "\n")
    text = _OVERWRITTEN.sub("", text).replace("\r", "")
    return exact(text)


def coloured_lines(text: str) -> list[Text]:
    """Return the lines of the text like ``plain``, but in the colours that the program gave them.

    Nothing is concealed, and nothing blinks.
    """
    text = _SEQUENCE.sub(_colour, text)
    text = _COLOURED_OVERWRITTEN.sub("", _COLOURED_END.sub(r"\1", text)).replace("\r", "")
    decoder = AnsiDecoder()
    lines: list[Text] = []
    for line in text.split("\n"):
        pieces = zip([*_COLOUR.findall(line), ""], _COLOUR.split(line), strict=True)
        row = decoder.decode_line("".join(exact(piece) + colour for colour, piece in pieces))
        row.spans = [span for span in row.spans if not _hides(span.style)]
        lines.append(row)
    return lines


def _colour(match: re.Match[str]) -> str:
    """Return a colour as it is, an escape character alone escaped, and nothing of other sequences."""
    return match[0] if _COLOUR.fullmatch(match[0]) else _escape(match[0]) if match[0] == "\x1b" else ""


def _hides(style: str | Style) -> bool:
    return isinstance(style, Style) and bool(style.conceal or style.blink or style.blink2)


def exact(text: str) -> str:
    """Return the full text with every control character escaped, so that a user can judge it by reading."""
    return UNSEEN.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
