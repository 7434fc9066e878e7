"""The sides of pictures: a provider refuses a whole conversation, again and again, for one picture that is too long."""

from __future__ import annotations

import struct

LONGEST_SIDE = 8000
"""Pixels of the longest side that models accept."""

PNG = b"\x89PNG\r\n\x1a\n"
"""The first bytes of a PNG."""

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of a JPEG that begin a frame, and so tell its sides."""


def longest_side(picture: bytes) -> int:
    """Return the pixels of the longer side of a PNG or JPEG, 0 if it does not tell."""
    try:
        if picture.startswith(PNG) and picture[12:16] == b"IHDR":
            return max(struct.unpack_from(">II", picture, 16))
        at = 2
        while picture[at] == 0xFF:
            if picture[at + 1] in _FRAMES:
                return max(struct.unpack_from(">HH", picture, at + 5))
            at += 2 + int.from_bytes(picture[at + 2 : at + 4])
    except (IndexError, struct.error):
        pass  # it is cut
    return 0
