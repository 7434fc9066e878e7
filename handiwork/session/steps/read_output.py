"""Page through outputs that are too large for their observations."""

from __future__ import annotations

import asyncio
import re
import time
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from handiwork.events.action import OutputReadAction
from handiwork.events.base import Observation
from handiwork.events.observation import ErrorObservation, OutputReadObservation
from handiwork.log.blobs import Blobs
from handiwork.log.errors import BlobMissing

MOST = 16_000
"""Characters of one page."""
LINE = 2_000
"""Characters of one line that are shown and searched."""
SHORTEST = 8
"""The minimal length of a handle."""
SECONDS = 10.0
"""Seconds after which a search stops."""

_LINE_BYTES = 4 * LINE
_CHUNK = 1 << 20
_LISTED = 20
_PATTERN = 200
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[*+?}]\??|\(", re.DOTALL)


async def read_output(
    blobs: Blobs, action: OutputReadAction, outputs: Collection[str], seconds: float = SECONDS
) -> Observation:
    """Return the page that the action asks for, or an ErrorObservation that lists the available outputs.

    ``outputs`` are the blobs of this session's observations, the newest last; other blobs are not read. The page may
    end before ``action.end``, when it is full or after ``seconds`` of search; its own ``end`` is its last line.
    """
    prefix = action.output.strip().lower()
    matches = [blob for blob in set(outputs) if blob.startswith(prefix)]
    if len(prefix) < SHORTEST or len(matches) != 1:
        return ErrorObservation(content=_unknown_output(action.output, outputs), error_id="no_output")
    try:
        pattern = _compile(action.pattern)
        path = await asyncio.to_thread(blobs.path, matches[0])
        return await asyncio.to_thread(_page, path, matches[0], action, pattern, seconds)
    except ValueError as error:
        return ErrorObservation(content=str(error), error_id="bad_pattern")
    except (BlobMissing, OSError) as error:
        return ErrorObservation(content=f"The output cannot be read: {error}", error_id="no_output")


@dataclass
class _OutputPage:
    """The lines of a page; ``last`` is the last line read."""

    last: int
    parts: list[str] = field(default_factory=list[str])
    size: int = 0

    def add(self, part: str) -> bool:
        """Add a line; return False if it does not fit."""
        if self.size + len(part) > MOST:
            return False
        self.parts.append(part)
        self.size += len(part)
        return True


def _page(
    path: Path, blob: str, action: OutputReadAction, pattern: re.Pattern[str] | None, seconds: float
) -> Observation:
    page = _OutputPage(last=action.start - 1)
    deadline = time.monotonic() + seconds
    with path.open("rb") as file:
        lines = 0
        for number, head, length in _lines(file):
            lines = number
            if number < action.start:
                continue
            if action.end is not None and number > action.end:
                break
            text = _text(head, length)
            line = text if pattern is None else f"{number}: {text}"
            if (pattern is None or pattern.search(text[:LINE].rstrip("\r\n"))) and not page.add(line):
                break
            page.last = number
            if pattern is not None and time.monotonic() > deadline:
                break
        lines += _count_remaining_lines(file)
    if action.start > max(1, lines) or (action.end is not None and action.end < action.start):
        text = f"The output has lines 1 to {lines}: {action.start} to {action.end or 'the last'} are none of them."
        return ErrorObservation(content=text, error_id="bad_range")
    content = "".join(page.parts)
    return OutputReadObservation(
        output=blob, start=action.start, end=page.last, lines=lines, content=content, size=len(content.encode())
    )


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """Yield the number of each line, its first bytes, and its length in bytes."""
    number = 0
    while head := file.readline(_LINE_BYTES):
        length, piece = len(head), head
        while not piece.endswith(b"\n") and (piece := file.readline(_CHUNK)):
            length += len(piece)
        number += 1
        yield number, head, length


def _count_remaining_lines(file: BinaryIO) -> int:
    """Return the number of lines from this position, the start of a line, to the end."""
    count, last = 0, b"\n"
    while chunk := file.read(_CHUNK):
        count += chunk.count(b"\n")
        last = chunk[-1:]
    return count + (last != b"\n")


def _text(head: bytes, length: int) -> str:
    """Return a line as text: a long line is cut with a note, bytes that are not UTF-8 become backslash escapes."""
    text = head.decode("utf-8", "backslashreplace")
    if length == len(head) and len(text) <= LINE:
        return text
    return f"{text[:LINE]} [... only the first {LINE} characters of {length} bytes in this line ...]\n"


def _compile(pattern: str) -> re.Pattern[str] | None:
    """Return the compiled pattern, None for an empty one. Raises ValueError if it is invalid or may not terminate.

    Without groups and with one repetition the time of a search is bounded by the square of the line's length.
    """
    if not pattern:
        return None
    tokens: list[str] = _TOKEN.findall(pattern)
    if len(pattern) > _PATTERN or "(" in tokens or sum(token[0] in "*+?}" for token in tokens) > 1:
        raise ValueError(
            f"The pattern may have no groups, one repetition (* + ? {{}}) at most, and {_PATTERN} characters; "
            "alternatives are allowed. Write for example FAILED|ERROR, or test_.*failed."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # in Python [[:space:]] does not mean a class
            return re.compile(pattern)
    except (re.error, OverflowError, Warning) as error:
        raise ValueError(f"The pattern is no regular expression of Python: {error}.") from None


def _unknown_output(output: str, outputs: Collection[str]) -> str:
    if not outputs:
        return f"There is no output {output[:64]!r}: all outputs so far were shown whole."
    newest = ", ".join(blob[:12] for blob in list(outputs)[-_LISTED:])
    return f"There is no output {output[:64]!r}, or it is not given by {SHORTEST} characters. There are: {newest}."
