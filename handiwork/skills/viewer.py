"""The viewer: shows a window of the open file, 100 lines if not told otherwise, and moves it."""

from __future__ import annotations

import os

from .files import absolute, dangling_link, decoded, lines_of, read_text_bytes, write_bytes
from .tools import SkillError

WINDOW, LARGEST_WINDOW = 100, 300
"""Lines of a window: usually, and at most."""

_WIDEST = 2000  # characters of a line that are shown


class _Viewer:
    """The open file, None before one is opened, the line in the middle of its window, and the window's size."""

    path: str | None = None
    line = 1
    window = WINDOW


def open_file(path: str, line_number: int | None = 1, context_lines: int | None = 100) -> None:
    """Open a text file and show `context_lines` lines (at most 300) around `line_number`.

    Args:
        path: The file, absolute or from the current directory.
        line_number: The line in the middle of the window, from 1; 1 for None.
        context_lines: The number of lines to show; 100 for None.
    """
    file = absolute(path)
    line_number = 1 if line_number is None else line_number
    context_lines = WINDOW if context_lines is None else context_lines
    lines = lines_of(read_text_bytes(file))
    _check_line(line_number, max(1, len(lines)), file)
    _Viewer.path, _Viewer.line = file, line_number
    _Viewer.window = min(max(1, int(context_lines)), LARGEST_WINDOW)
    print(window_text(file, lines, line_number, _Viewer.window))


def goto_line(line_number: int) -> None:
    """Move the window of the open file to the line."""
    file = open_path()
    lines = lines_of(read_text_bytes(file))
    _check_line(line_number, max(1, len(lines)), file)
    _Viewer.line = line_number
    print(window_text(file, lines, line_number, _Viewer.window))


def scroll_down() -> None:
    """Move the window of the open file down by 100 lines."""
    _scroll(WINDOW)


def scroll_up() -> None:
    """Move the window of the open file up by 100 lines."""
    _scroll(-WINDOW)


def create_file(filename: str) -> None:
    """Make a new empty file, with its directories, and open it."""
    file = absolute(filename)
    if os.path.lexists(file):
        raise SkillError(dangling_link(file) or f"{file} exists already: open it instead.")
    write_bytes(file, b"")
    _Viewer.path, _Viewer.line, _Viewer.window = file, 1, WINDOW
    print(window_text(file, [], 1, WINDOW))


def open_path() -> str:
    """Return the open file. Raises SkillError if there is none."""
    if _Viewer.path is None:
        raise SkillError("No file is open: use open_file first.")
    return _Viewer.path


def show_change(path: str, lines: list[bytes], line: int) -> None:
    """Open the file at the line and show it after a change."""
    _Viewer.path, _Viewer.line, _Viewer.window = path, min(max(1, line), max(1, len(lines))), WINDOW
    print(window_text(path, lines, _Viewer.line, WINDOW))
    print("[The file is changed. Check that indentation is right and no line is there twice; edit again if needed.]")


def window_text(path: str, lines: list[bytes], line: int, window: int) -> str:
    """Return the window around a line, with a header, the lines' numbers, and how many lines are above and below."""
    first = max(1, min(line - (window - 1) // 2, len(lines) - window + 1))
    last = min(len(lines), first + window - 1)
    above, below = first - 1, len(lines) - last
    shown = [f"{number}|{_cut(decoded(lines[number - 1]))}" for number in range(first, last + 1)]
    return "\n".join(
        [
            f"[File: {path} ({len(lines)} lines total)]",
            f"({above} more lines above)" if above else "(this is the beginning of the file)",
            *shown,
            f"({below} more lines below)" if below else "(this is the end of the file)",
            *(["[Use scroll_up() and scroll_down() to see more.]"] if above or below else []),
        ]
    )


def _scroll(lines_down: int) -> None:
    file = open_path()
    lines = lines_of(read_text_bytes(file))
    _Viewer.line = min(max(1, _Viewer.line + lines_down), max(1, len(lines)))
    print(window_text(file, lines, _Viewer.line, _Viewer.window))


def _check_line(line: int, last: int, path: str) -> None:
    if isinstance(line, bool) or not isinstance(line, int) or not 1 <= line <= last:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SkillError(f"{path} has lines 1 to {last}; there is no line {line!r}.")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]}... [{len(line) - _WIDEST} more characters]"
