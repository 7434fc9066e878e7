"""Makes text of agents and programs harmless for the user's terminal."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC and the like: titles
    r"|\x1b[ -/]*[0-~]"
)
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n\r])")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Return the text as it would be read: without control sequences, and with control characters spelled out.

    Of a line that a program wrote over with carriage returns, the last version is kept. Characters that turn
    the direction of writing are spelled out too, as they can make text read differently from what it is.
    """
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    text = _OVERWRITTEN.sub("", text).replace("\r", "")
    return exact(text)


def exact(text: str) -> str:
    """Return the text with nothing left out and every control character spelled out: what is judged by it is all."""
    return _UNSEEN.sub(lambda found: _spelled(found[0]), text)


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
