"""Pictures on terminals that can show them: by the protocols of kitty and iTerm2, or as sixels."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby
from typing import Literal

from handiwork.events.pictures import PNG

PictureProtocol = Literal["kitty", "iterm", "sixel"]

PIECE = 4096
"""The characters of a picture in one of kitty's sequences."""
PIXELS = 1_000_000
"""The number of pixels of the largest picture that becomes sixels."""
CELL = 9
"""The pixels of a column, about: a wider picture is made as wide as the terminal."""
SIXEL_WIDTH = 720
"""The pixels of the widest picture in sixels; wider ones lose columns and rows."""
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_STEPS = 6
"""The levels of red, green and blue in sixels."""


def picture_protocol(environment: Mapping[str, str] = os.environ) -> PictureProtocol | None:
    """Return the way in which the user's terminal shows pictures, as its variables tell; None if it is not known to."""
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if term.startswith(("screen", "tmux")) or program == "tmux":
        return None
    if term == "xterm-kitty" or "KITTY_WINDOW_ID" in environment or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return "sixel" if term.startswith(("foot", "mlterm", "contour")) else None


def picture_sequence(data: bytes, protocol: PictureProtocol, columns: int) -> str | None:
    """Return the escape sequence that shows the picture in so many columns; None if the terminal cannot show it."""
    if protocol == "iterm":
        size = f"size={len(data)};width=auto;height=auto"
        return f"\x1b]1337;File=inline=1;{size}:{base64.b64encode(data).decode()}\x07"
    if not data.startswith(PNG) or len(data) < 33:
        return None
    width, height = struct.unpack(">II", data[16:24])
    if protocol == "kitty":
        wide = f",c={columns - 4}" if width > (columns - 4) * CELL else ""
        text = base64.b64encode(data).decode()
        pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
        keys = [f"a=T,f=100,q=2{wide},", *[""] * (len(pieces) - 1)]
        last = len(pieces) - 1
        return "".join(
            f"\x1b_G{key}m={int(n < last)};{piece}\x1b\\"
            for n, (key, piece) in enumerate(zip(keys, pieces, strict=True))
        )
    if width * height > PIXELS:
        return None
    try:
        return _sixels(_rows(data), -(-width // SIXEL_WIDTH))
    except (KeyError, IndexError, ValueError, struct.error, zlib.error):
        return None


Pixel = tuple[int, int, int]


def _rows(data: bytes) -> list[list[Pixel]]:
    """Return the pixels of a PNG of 8 bits a channel, on white. Raises ValueError for another form of PNG."""
    chunks: defaultdict[bytes, bytes] = defaultdict(bytes)
    position = len(PNG)
    while position < len(data):
        (length,) = struct.unpack(">I", data[position : position + 4])
        kind, content = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        chunks[kind] += content
        position += length + 12
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if depth != 8 or interlaced:
        raise ValueError("not 8 bits a channel, row by row")
    channels = _CHANNELS[colours]
    stride, palette = width * channels, chunks[b"PLTE"]
    size = (stride + 1) * height
    raw = zlib.decompressobj().decompress(chunks[b"IDAT"], size)
    if len(raw) != size:
        raise ValueError("rows are missing")
    above, rows = bytearray(stride), list[list[Pixel]]()
    for start in range(0, len(raw), stride + 1):
        row = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, channels)
        rows.append([_pixel(row[at : at + channels], colours, palette) for at in range(0, stride, channels)])
        above = row
    return rows


def _unfiltered(kind: int, row: bytearray, above: bytearray, channels: int) -> bytearray:
    """Undo a PNG's filter of a row, as in section 9 of its specification."""
    for at in range(len(row)):
        left, up = row[at - channels] if at >= channels else 0, above[at]
        corner = above[at - channels] if at >= channels else 0
        match kind:
            case 1:
                row[at] = (row[at] + left) & 255
            case 2:
                row[at] = (row[at] + up) & 255
            case 3:
                row[at] = (row[at] + (left + up) // 2) & 255
            case 4:
                guess = left + up - corner
                nearest = min((left, up, corner), key=lambda value: abs(guess - value))
                row[at] = (row[at] + nearest) & 255
            case _:
                return row
    return row


def _pixel(parts: bytearray, colours: int, palette: bytes) -> Pixel:
    if colours == 3:
        red, green, blue = palette[3 * parts[0] : 3 * parts[0] + 3]
        return red, green, blue
    red, green, blue = (parts[0],) * 3 if colours in (0, 4) else parts[:3]
    alpha = parts[-1] if colours in (4, 6) else 255
    white = 255 * (255 - alpha)
    return (red * alpha + white) // 255, (green * alpha + white) // 255, (blue * alpha + white) // 255


def _sixels(rows: list[list[Pixel]], step: int) -> str:
    """Return every ``step``-th pixel of every ``step``-th row as sixels, six rows at a time."""
    levels = range(_STEPS)
    colours = [(red, green, blue) for red in levels for green in levels for blue in levels]
    text = ["\x1bP0;1q"]
    for number, colour in enumerate(colours):
        red, green, blue = (level * 100 // (_STEPS - 1) for level in colour)
        text.append(f"#{number};2;{red};{green};{blue}")
    small = [row[::step] for row in rows[::step]]
    for top in range(0, len(small), 6):
        bands: dict[int, bytearray] = {}
        for bit, row in enumerate(small[top : top + 6]):
            for column, (red, green, blue) in enumerate(row):
                number = (_level(red) * _STEPS + _level(green)) * _STEPS + _level(blue)
                bands.setdefault(number, bytearray(len(row)))[column] |= 1 << bit
        for number, bits in bands.items():
            runs = ((chr(63 + value), len(list(run))) for value, run in groupby(bits))
            text.append(f"#{number}{''.join(f'!{count}{sixel}' for sixel, count in runs)}$")
        text.append("-")
    return "".join([*text, "\x1b\\"])


def _level(part: int) -> int:
    return (part * (_STEPS - 1) + 127) // 255
