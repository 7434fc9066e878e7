"""Names of files for people to read: a name cannot pretend to be more than one, or to be another line."""

from __future__ import annotations

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def quoted(name: str) -> str:
    """A file name the way git writes it: in double quotes, if anything in it cannot be printed or is a quote.

    What cannot be printed, like newlines, escapes and marks that turn the direction of writing, is written as octal
    numbers of its bytes.
    """
    if name.isprintable() and '"' not in name and "\\" not in name:
        return name
    return f'"{"".join(map(_escaped, name))}"'


def _escaped(letter: str) -> str:
    if ord(letter) in _ESCAPES:
        return _ESCAPES[ord(letter)]
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode(errors="surrogateescape"))
