"""Tools to decode messages: hexadecimal text, reversed text and the Caesar cipher."""

from __future__ import annotations

import string
from typing import Any

LETTERS = 26


def convert_hex_to_ascii(hex_string: str) -> str:
    """Convert a hexadecimal string to text. Raises ValueError if it is not hexadecimal."""
    return bytearray.fromhex(f"{hex_string}").decode()


def reverse_string(string: str) -> str:
    """Reverse a string."""
    return "".join(reversed(string))


def caesar_decode(message: str, shift: int) -> str:
    """Decode a message that the Caesar cipher encoded with a shift; only the letters of ASCII were shifted."""
    back = -int(shift) % LETTERS
    table: dict[int, int] = {}
    for alphabet in (string.ascii_lowercase, string.ascii_uppercase):
        table |= str.maketrans(alphabet, alphabet[back:] + alphabet[:back])
    return message.translate(table)


def string_length(string: str) -> int:
    """Return the length of a string."""
    return len(string)


def minimum_value(*args: Any) -> Any:
    """Return the smallest of the arguments."""
    return min(args)


def maximum_value(*args: Any) -> Any:
    """Return the largest of the arguments."""
    return max(args)
