"""What terminals get to show a picture."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from random import Random

import pytest

from handiwork.cli.terminal.pictures import PictureProtocol, picture_protocol, picture_sequence

RED, BLUE, WHITE = (100, 0, 0), (0, 0, 100), (100, 100, 100)


def png(rows: list[list[tuple[int, ...]]], filters: list[int], colours: int) -> bytes:
    """Return a PNG of these pixels, each row with its filter."""
    channels, above, body = len(rows[0][0]), [0] * len(rows[0]) * len(rows[0][0]), b""
    for kind, row in zip(filters, rows, strict=True):
        flat = [part for pixel in row for part in pixel]
        coded = bytearray([kind])
        for at, value in enumerate(flat):
            left = flat[at - channels] if at >= channels else 0
            corner = above[at - channels] if at >= channels else 0
            guess = left + above[at] - corner
            paeth = min((left, above[at], corner), key=lambda one: abs(guess - one))
            coded.append((value - [0, left, above[at], (left + above[at]) // 2, paeth][kind]) & 255)
        body, above = body + coded, flat
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, colours, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(body)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )


def shown(sequence: str, width: int) -> list[list[tuple[int, ...]]]:
    """Draw sixels as a terminal does; return the rows of colours in percent."""
    colours = {int(m[1]): tuple(map(int, m[2].split(";"))) for m in re.finditer(r"#(\d+);2;(\d+;\d+;\d+)", sequence)}
    rows: list[list[tuple[int, ...]]] = []
    for band in re.sub(r"#\d+;2;\d+;\d+;\d+|\x1bP0;1q|\x1b\\", "", sequence).split("-")[:-1]:
        picture = [[()] * width for _ in range(6)]
        for colour, runs in re.findall(r"#(\d+)((?:!\d+[?-~])+)\$", band):
            column = 0
            for count, sixel in re.findall(r"!(\d+)([?-~])", runs):
                for _ in range(int(count)):
                    for bit in range(6):
                        if ord(sixel) - 63 >> bit & 1:
                            picture[bit][column] = colours[int(colour)]
                    column += 1
        rows += picture
    return rows


def test_sixels_are_the_pixels_of_every_filter_and_kind_of_colour() -> None:
    red, blue, clear = (255, 0, 0, 255), (0, 0, 255, 255), (0, 0, 0, 0)
    rows = [
        [red, blue, clear],
        [blue, red, red],
        [red, red, blue],
        [clear, blue, blue],
        [red] * 3,
        [blue] * 3,
        [clear] * 3,
    ]
    sequence = picture_sequence(png(rows, [0, 1, 2, 3, 4, 4, 1], 6), "sixel", 80)
    assert sequence is not None
    meaning = {red: RED, blue: BLUE, clear: WHITE}
    assert shown(sequence, 3)[:7] == [[meaning[pixel] for pixel in row] for row in rows]
    grey = picture_sequence(png([[(0,), (255,)]], [0], 0), "sixel", 80)
    assert grey is not None
    assert shown(grey, 2)[0] == [(0, 0, 0), WHITE]


def test_kitty_and_iterm_get_the_file_itself() -> None:
    data = png([[tuple(Random(n).randbytes(3)) for n in range(3000)]], [0], 2)
    kitty = picture_sequence(data, "kitty", 80)
    assert kitty is not None
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", kitty)
    assert len(pieces) > 1
    assert base64.b64decode("".join(piece for _, piece in pieces)) == data
    assert [keys[-1] for keys, _ in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    assert ",c=76," in pieces[0][0]
    iterm = picture_sequence(data, "iterm", 80)
    assert iterm is not None
    assert base64.b64decode(iterm.partition(":")[2].rstrip("\x07")) == data


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", png([[(0,)]], [0], 0)[:40], png([[(0,)]], [0], 0).replace(b"IDAT", b"IDAX")]
)
def test_what_is_no_whole_png_is_not_shown(data: bytes) -> None:
    assert picture_sequence(data, "sixel", 80) is None


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_the_terminals_variables_tell_what_it_can_show(
    environment: dict[str, str], protocol: PictureProtocol | None
) -> None:
    assert picture_protocol(environment) == protocol
