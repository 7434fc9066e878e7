"""The forms of a secret in text, as regular expressions: plain, escaped, URL, base64, hex, hex dumps.

A form is a sequence of units, one for each character or byte of the secret. Bytes are decoded as latin-1, so the same
forms find a secret in text and in files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPES = 8
"""Maximum number of backslashes before a character: JSON in JSON in JSON turns one into eight."""
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_HTML = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_SHORT_ESCAPES = {"\n": "[nr]", "\t": "t", "\b": "b", "\f": "f", "\r": "[nr]", "\a": "a", "\v": "v", "\x1b": "[eE]"}

# Each begins with a character class, so it costs almost nothing in text without these characters.
_LINE_BREAK = r"[\r\n\\][\r\n\\rn]{0,16}"
# A hex dump may break the line between two bytes: the row's bytes as characters, then the next row's offset.
_SEPARATOR = r"(?:(?:  [^\n]{1,18})?\n[0-9a-fA-F]{6,8}:?[ ]{1,2}|[\s:%,\\-][\s\\xrnt]{0,16}(?:0x)?)"
_BETWEEN, _BETWEEN_BYTES = 17, 34
"""Maximum number of characters between two base64 characters, and between two hex bytes."""
_REST_OF_ROW = r"(?:(?:[ ]{0,2}[0-9a-fA-F]{2}){0,15}[ ]{2,50}[^\n]{1,18}(?![^\n]))?"
ROW = 82
"""Maximum number of characters in a row of a hex dump after the last byte of a secret."""
_ANY_BASE64, _ANY_HEX = r"(?:[A-Za-z0-9+/_-]|%2[bBfF])", "[0-9a-fA-F]{2}"

# The backslashes before an encoded character: none, any number, at least one.
_BARE, _ANY, _ESCAPED = "", rf"\\{{0,{_ESCAPES}}}", rf"\\{{1,{_ESCAPES}}}"
# Before a line feed: a file may have CR LF, of which a terminal makes CR CR LF.
_RETURNS = rf"(?:{_ANY}\r|%0[dD]|{_ESCAPED}(?:r|u000[dD]|x0[dD]|015)){{0,2}}"


@dataclass(frozen=True, slots=True)
class Unit:
    """One step of a form: ``expression`` matches it, at most ``width`` characters long.

    ``part`` matches a possible beginning of it, even an empty one. ``beginnings`` match it as a form's first unit: each
    starts with a plain character, which makes the search for many forms at once fast, and so omits all backslashes but
    one.
    """

    expression: str
    width: int
    part: str
    beginnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """One encoding of a secret; ``any_unit`` matches any unit of the encoding, "" if every unit must match exactly.

    ``rest`` matches a repetition of the secret after its last unit, of at most ``ROW`` characters, possibly none.
    """

    units: tuple[Unit, ...]
    any_unit: str = ""
    rest: str = ""


def forms(secret: str) -> Iterator[Form]:
    """Yield the forms of a secret."""
    yield plain(secret)
    data = secret.encode("utf-8", "surrogateescape")
    for skipped in range(3):
        yield Form(tuple(_base64(data, skipped)), f"(?:{_ANY_BASE64}|{_LINE_BREAK}{_ANY_BASE64})")
    yield Form(tuple(map(_hex, data)), f"(?:{_SEPARATOR}?{_ANY_HEX})", _REST_OF_ROW)


def plain(secret: str) -> Form:
    """Return the form of the secret as plain text, with any of its characters escaped."""
    return Form(tuple(map(_character, secret.replace("\r\n", "\n"))))


def _character(character: str) -> Unit:
    """Return the unit of a character: plain, or escaped for JSON, a shell, a URL or HTML."""
    if character.isascii() and (character.isalnum() or character == "_"):
        return Unit(character, 1, "", (character,))
    data = character.encode("utf-8", "surrogateescape")
    ways = [(_ANY, re.escape(character)), (_BARE, "".join(f"%{_nibbles(byte)}" for byte in data))]
    code = ord(character)
    if character == "\\":
        ways[0] = (_BARE, rf"\\{{1,{_ESCAPES}}}")
    if character == " ":
        ways.append((_BARE, r"\+"))
    if character in _SHORT_ESCAPES:
        ways.append((_ESCAPED, _SHORT_ESCAPES[character]))
    if character in _HTML:
        ways.append((_BARE, f"&(?:{_HTML[character]}|#0?{code}|#x{_nibbles(code)});"))
    if character == "'":  # bash and Python's shlex close the quotes for it
        ways.append((_BARE, rf"'(?:\\{{1,{_ESCAPES}}}'|\\{{0,{_ESCAPES}}}\"'\\{{0,{_ESCAPES}}}\")'"))
    pairs = character.encode("utf-16-be", "surrogatepass")
    wide = [f"u{_nibbles(pairs[at])}{_nibbles(pairs[at + 1])}" for at in range(0, len(pairs), 2)]
    ways.append((_ESCAPED, _ESCAPED.join(wide)))
    ways.append((_ESCAPED, _ESCAPED.join(f"x{_nibbles(byte)}" for byte in data)))
    ways.append((_ESCAPED, _ESCAPED.join(f"{byte:03o}" for byte in data)))
    if not character.isascii():
        ways.append((_BARE, re.escape(data.decode("latin-1"))))
        ways += [(_ESCAPED, f"x{_nibbles(code)}")] if code < 256 else []
    expression = "|".join(before + way for before, way in ways)
    width = (_ESCAPES + 5) * max(len(data), 2)
    beginnings = tuple(rf"\\{way}" if before == _ESCAPED else way for before, way in ways)
    if character == "\\":
        beginnings = (rf"\\\\{{0,{_ESCAPES - 1}}}", *beginnings[1:])
    own, returns, repeat = re.escape(data.decode("latin-1")), "", ""
    if character == "\n":
        own, returns, repeat, width = rf"\r{own}", _RETURNS, "{1,2}", 2 * width
    part = rf"(?:[\\%&{own}][\\%&#\w\"{own}]{{0,{width}}})?"
    return Unit(f"{returns}(?:{expression}){repeat}", width, part, beginnings)


def _base64(data: bytes, skipped: int) -> Iterator[Unit]:
    """Yield the units of the data in base64 after ``skipped`` other bytes, with line breaks at any place.

    The first character is left out if it has bits of the bytes before; the last one may have bits of those after.
    """
    bits = int.from_bytes(data, "big")
    start, end = 8 * skipped, 8 * (skipped + len(data))
    first = -(-start // 6)
    width, part = _BETWEEN + 6, rf"(?:{_LINE_BREAK})?(?:%2?|\\(?:u0?0?2?)?)?"
    for place in range(first, end // 6):
        ways = _base64_character(_BASE64[bits >> (end - 6 * (place + 1)) & 63])
        own = f"(?:{'|'.join(ways)})"
        yield Unit(own if place == first else f"(?:{own}|{_LINE_BREAK}{own})", width, part, ways)
    if free := 6 * -(-end // 6) - end:
        value = (bits & ((1 << (6 - free)) - 1)) << free
        own = "|".join(way for low in range(1 << free) for way in _base64_character(_BASE64[value + low]))
        yield Unit(f"(?:(?:{_LINE_BREAK})?(?:{own}))?", width, part, ())


def _base64_character(character: str) -> tuple[str, ...]:
    """Return the ways to write a base64 character: in both alphabets, in URLs and in JSON."""
    match character:
        case "+":
            return r"\+", "-", "%2[bB]", r"\\u002[bB]"
        case "/":
            return "/", "_", "%2[fF]", r"\\/"
        case _:
            return (character,)


def _hex(byte: int) -> Unit:
    """Return the unit of a hex byte after an optional separator; URLs and escapes that encode every byte match too."""
    digits = _nibbles(byte)
    high, low = f"{byte:02x}"
    beginnings = tuple(f"{digit}{_nibble(low)}" for digit in sorted({high, high.upper()}))
    part = f"(?:{_SEPARATOR})?{_nibble(high)}?"
    return Unit(f"(?:{digits}|{_SEPARATOR}{digits})", _BETWEEN_BYTES + 2, part, beginnings)


def _nibbles(byte: int) -> str:
    return "".join(map(_nibble, f"{byte:02x}"))


def _nibble(digit: str) -> str:
    return digit if digit.isdigit() else f"[{digit}{digit.upper()}]"
