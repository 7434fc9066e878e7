"""Edits of text files. Bytes outside the edited lines or text are never touched: line ends, tabs, a missing newline."""

from __future__ import annotations

from .files import absolute, decoded, encoded, lines_of, read_text_bytes
from .guard import guarded_write
from .tools import SkillError
from .viewer import show_change

_MAX_PLACES = 20  # matches that an error lists
_WIDEST = 120  # characters of a listed line
_MARK = b"\xef\xbb\xbf"
"""The byte order mark, which stays at the beginning of its file."""


def edit_file(file_name: str, start: int, end: int, content: str) -> None:
    """Replace the lines `start` to `end` by `content`; an empty `content` deletes them.

    Args:
        file_name: The file, absolute or from the current directory.
        start: The first line to replace, from 1.
        end: The last line to replace.
        content: The new lines.
    """
    path, data, lines = _read(file_name)
    if not (_is_line(start) and _is_line(end) and 1 <= start <= end <= len(lines)):
        raise SkillError(f"{path} has {len(lines)} lines: {start!r} to {end!r} are no lines of it.")
    replaced = lines[start - 1 : end]
    new = _as_lines(content, _line_end(replaced) or _line_end(lines) or b"\n")
    if new and not replaced[-1].endswith(b"\n"):
        new = _without_end(new)
    _write(path, data, _marked(data, [*lines[: start - 1], new, *lines[end:]]), start, new)


def edit_file_by_replace(file_name: str, to_replace: str, new_content: str) -> None:
    r"""Replace the text `to_replace`, which must occur exactly once in the file, by `new_content`.

    Args:
        file_name: The file, absolute or from the current directory.
        to_replace: The exact text, with its spaces, and enough around it to be unique.
        new_content: The text to put in its place.
    """
    path, data, lines = _read(file_name)
    if not to_replace:
        raise SkillError("The text to replace is empty. To add lines, use insert_content_at_line or append_file.")
    if to_replace == new_content:
        raise SkillError("The old and the new text are the same: there is nothing to edit.")
    old, new = encoded(to_replace), encoded(new_content)
    has_crlf = _line_end(lines) == b"\r\n"
    if data.find(old) < 0 and b"\r\n" in data and b"\r" not in old:
        old, has_crlf = old.replace(b"\n", b"\r\n"), True
    if has_crlf and b"\n" not in old.replace(b"\r\n", b""):
        new = new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    places = _places(data, old)
    if not places:
        raise SkillError(_not_found(path, data, to_replace))
    if len(places) > 1:
        raise SkillError(_not_unique(path, data, places))
    position = places[0]
    changed = data[:position] + new + data[position + len(old) :]
    _write(path, data, changed, data.count(b"\n", 0, position) + 1, new)


def insert_content_at_line(file_name: str, line_number: int, content: str) -> None:
    """Insert `content` as new lines before the line `line_number`.

    Args:
        file_name: The file, absolute or from the current directory.
        line_number: The number that the first new line will have, at most one more than that of the last line.
        content: The new lines.
    """
    path, data, lines = _read(file_name)
    if not _is_line(line_number) or not 1 <= line_number <= len(lines) + 1:
        raise SkillError(f"{path} has {len(lines)} lines: lines can be inserted at 1 to {len(lines) + 1}.")
    if line_number > len(lines):
        _append(path, data, lines, content)
        return
    new = _as_lines(content, _line_end(lines) or b"\n")
    after = _marked(data, [*lines[: line_number - 1], new, *lines[line_number - 1 :]])
    _write(path, data, after, line_number, new)


def append_file(file_name: str, content: str) -> None:
    """Add `content` as new lines at the end of the file.

    Args:
        file_name: The file, absolute or from the current directory.
        content: The new lines.
    """
    path, data, lines = _read(file_name)
    _append(path, data, lines, content)


def _read(file_name: str) -> tuple[str, bytes, list[bytes]]:
    """Return a file's path, its bytes, and its lines without the mark."""
    path = absolute(file_name)
    data = read_text_bytes(path)
    return path, data, lines_of(data.removeprefix(_MARK))


def _marked(before: bytes, lines: list[bytes]) -> bytes:
    """Return the lines as one text, after the mark if the text before began with it."""
    after = b"".join(lines)
    return _MARK + after if before.startswith(_MARK) and not after.startswith(_MARK) else after


def _append(path: str, data: bytes, lines: list[bytes], content: str) -> None:
    """Add lines at the end; a file whose last line has no newline keeps ending without one."""
    end = _line_end(lines) or b"\n"
    new = _as_lines(content, end)
    if lines and not lines[-1].endswith(b"\n"):
        new = end + _without_end(new) if new else b""
    _write(path, data, data + new, len(lines) + 1, new)


def _write(path: str, before: bytes, after: bytes, line: int, new: bytes) -> None:
    if before == after:
        raise SkillError(f"{path} has this text already: there is nothing to edit.")
    if not (new.isascii() or _is_utf8(before) or _is_utf8(after)):
        raise SkillError(
            f"{path} is not UTF-8, and the new text is not ASCII: edit it by a script in its own encoding."
        )
    remarks = guarded_write(path, before, after)
    show_change(path, lines_of(after), line)
    for remark in remarks:
        print(f"The syntax check does not understand this; look whether it is right: {remark}")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_lines(content: str, end: bytes) -> bytes:
    """Return the text as whole lines with the given line end; "" is no line."""
    data = encoded(content).replace(b"\r\n", b"\n")
    if data and not data.endswith(b"\n"):
        data += b"\n"
    return data.replace(b"\n", end)


def _without_end(lines: bytes) -> bytes:
    return lines[:-2] if lines.endswith(b"\r\n") else lines[:-1]


def _line_end(lines: list[bytes]) -> bytes | None:
    """Return the line end of the first line, None if no line has one."""
    if not lines or not lines[0].endswith(b"\n"):
        return None
    return b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"


def _is_line(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _places(data: bytes, old: bytes) -> list[int]:
    """Return the offsets of all matches, overlapping ones too: each could be meant."""
    places: list[int] = []
    position = data.find(old)
    while position >= 0:
        places.append(position)
        position = data.find(old, position + 1)
    return places


def _not_unique(path: str, data: bytes, places: list[int]) -> str:
    lines = data.split(b"\n")
    numbers = [data.count(b"\n", 0, position) for position in places[:_MAX_PLACES]]
    listed = [f"{number + 1}|{decoded(lines[number])[:_WIDEST]}" for number in numbers]
    more = len(places) - len(listed)
    return "\n".join(
        [
            f"The text to replace occurs {len(places)} times in {path}, which is unchanged. It begins on:",
            *listed,
            *([f"and {more} more times"] if more else []),
            "Add lines around it to tell which is meant.",
        ]
    )


def _not_found(path: str, data: bytes, old: str) -> str:
    """Say where the text is if it only differs in its spaces, which the edit does not guess."""
    message = f"The text to replace does not occur in {path} exactly as given."
    wanted = [line.split() for line in old.strip().split("\n")]
    lines = [decoded(line) for line in data.split(b"\n")]
    words = [line.split() for line in lines]
    for index in range(len(lines) - len(wanted) + 1):
        if words[index : index + len(wanted)] == wanted:
            similar = [f"{index + number + 1}|{lines[index + number][:_WIDEST]}" for number in range(len(wanted))]
            return "\n".join([f"{message} These lines differ from it only in spaces:", *similar[:_MAX_PLACES]])
    return f"{message} Look at the file with open_file or search_file."
