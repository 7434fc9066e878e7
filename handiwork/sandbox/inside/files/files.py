"""Reads and writes files; failures raise ActionError."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Generator
from dataclasses import dataclass

from ..errors import ActionError
from ..output import Keep, Output, Spools, Text, write_all

CHUNK = 256 * 1024
"""Bytes read at a time."""

_ERROR_IDS = {
    errno.ENOENT: "not_found",
    errno.EISDIR: "is_directory",
    errno.ENOTDIR: "not_directory",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
}


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines ``start`` to ``end`` of a file that has ``lines`` lines."""

    text: Text
    start: int
    end: int
    lines: int


@contextlib.contextmanager
def action_errors(path: str) -> Generator[None]:
    """Turn an OSError into an ActionError that names ``path``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ActionError(_ERROR_IDS.get(error.errno or 0, "failed"), f"{path}: {reason}") from error
    except UnicodeDecodeError:
        raise  # it is about the file's content
    except ValueError as error:  # a NUL or a lone surrogate in the path
        raise ActionError("not_found", f"{path!r} cannot be the name of a file: {error}") from error


def open_file(path: str) -> int:
    """Return a descriptor that reads the regular file ``path``; the caller closes it."""
    with action_errors(path):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        kind = os.fstat(file).st_mode
        if stat.S_ISREG(kind):
            return file
        os.close(file)
    if stat.S_ISDIR(kind):
        raise ActionError("is_directory", f"{path} is a directory; list it instead.")
    raise ActionError("not_regular", f"{path} is no regular file but a device, pipe or socket.")


def read_bytes(path: str) -> bytes:
    """Return the content of the regular file ``path``."""
    with action_errors(path), open(open_file(path), "rb") as file:
        return file.read()


def read_lines(path: str, start: int, end: int | None, keep: Keep, spools: Spools) -> LineRange:
    """Return lines ``start`` to ``end`` (1-based, inclusive, None is the last) of a UTF-8 text."""
    if end is not None and end < start:
        raise ActionError("bad_range", f"The end of the range, {end}, is before its start, {start}.")
    output = Output(spools)
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, last = 1, b""
    try:
        with action_errors(path), open(open_file(path), "rb") as file:
            while chunk := file.read(CHUNK):
                decoder.decode(chunk)
                output.feed(_slice_lines(chunk, line, start, end))
                line += chunk.count(b"\n")
                last = chunk
        decoder.decode(b"", final=True)
        lines = line if last and not last.endswith(b"\n") else line - 1
        if start > max(lines, 1):
            raise ActionError("bad_range", f"{path} has {lines} lines; there is no line {start}.")
    except UnicodeDecodeError as error:
        output.discard()
        raise ActionError(
            "not_text", f"{path} is not UTF-8 text; look at it with a command like `file` or `xxd`."
        ) from error
    except ActionError:
        output.discard()
        raise
    text, _ = output.take(keep)
    return LineRange(text, start, min(lines, end or lines), lines)


def write_bytes(path: str, data: bytes) -> bool:
    """Write ``data`` to ``path`` atomically, with the file's previous mode; return True if the file is new."""
    with replacing(path) as file, action_errors(path):
        created = not os.path.exists(path)
        write_all(file, data)
    return created


@contextlib.contextmanager
def replacing(path: str) -> Generator[int]:
    """Yield a descriptor of a new file that replaces ``path`` at the end, and is removed on an error."""
    with action_errors(path):
        target = os.path.realpath(path)
        _check_link(path, target)
        mode, owner = _mode_and_owner(target)
        directory, name = os.path.split(target)
        os.makedirs(directory, exist_ok=True)
        temporary = os.path.join(directory, f".{name[:40]}.{secrets.token_hex(6)}")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        yield file
        with action_errors(path):
            if mode is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(file, *owner)
                os.fchmod(file, mode)
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(file)


def _check_link(path: str, target: str) -> None:
    """Refuse a path that is a link to a hidden file: the user who allowed the edit saw only the path."""
    visible_parts = f"{os.path.abspath(path)}/{os.getcwd()}".split("/")
    if any(part.startswith(".") and part not in visible_parts for part in target.split("/")):
        raise ActionError("is_link", f"{path} is a link to the hidden file {target}; edit that by its own name.")


def _mode_and_owner(path: str) -> tuple[int | None, tuple[int, int]]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None, (-1, -1)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise ActionError("not_regular", f"{path} is no regular file but a device, pipe or socket.")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only; change its mode first")
    return stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)


def _slice_lines(chunk: bytes, line: int, start: int, end: int | None) -> bytes:
    """Return the part of ``chunk``, which begins in line ``line``, that lies in the lines from ``start`` to ``end``."""
    first = _offset_after(chunk, start - line)
    last = len(chunk) if end is None else _offset_after(chunk, end - line + 1)
    return chunk[first:last]


def _offset_after(chunk: bytes, newlines: int) -> int:
    """Return the offset just after ``newlines`` newlines, or the end."""
    if newlines > chunk.count(b"\n"):
        return len(chunk)
    position = 0
    for _ in range(newlines):
        position = chunk.index(b"\n", position) + 1
    return position
