"""Files as bytes: a skill leaves every byte outside of its change as it is."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

from .tools import SkillError

_SNIFFED = 8192  # bytes in which a NUL tells that a file is no text


def absolute(path: str) -> str:
    """Return the absolute path; ``~`` is the user's home. Raises SkillError for a path that cannot be one."""
    if not path or "\0" in path:
        raise SkillError(f"{path!r} cannot be the name of a file.")
    return os.path.abspath(os.path.expanduser(path))


def read_text_bytes(path: str) -> bytes:
    """Return the content of a text file. Raises SkillError for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        kind = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(kind):
            os.close(descriptor)
            what = "a directory" if stat.S_ISDIR(kind) else "no regular file but a device, pipe or socket"
            raise SkillError(f"{path} is {what}.")
        with open(descriptor, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SkillError(dangling_link(path) or f"{path}: {error.strerror or error}.") from None
    if b"\0" in data[:_SNIFFED]:
        raise SkillError(f"{path} is a binary file, not text.")
    return data


def dangling_link(path: str) -> str:
    """Return the error about a path that is a link to nothing, "" for any other path."""
    if not os.path.islink(path) or os.path.exists(path):
        return ""
    target = os.readlink(path)
    return f"{path} is a dangling link: its target {target} does not exist. Create the target, or remove the link."


def write_bytes(path: str, data: bytes) -> None:
    """Replace the content of a file at once, keeping its mode; a link's target is replaced. Raises SkillError."""
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:100]}.{secrets.token_hex(6)}")
    try:
        try:
            status = os.stat(target)
            if not os.access(target, os.W_OK):
                raise SkillError(f"{path} is read-only; change its mode first.")
        except FileNotFoundError:
            status = None
        os.makedirs(os.path.dirname(target), exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                if status is not None:
                    _keep_owner(descriptor, status)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise SkillError(f"{path}: {error.strerror or error}.") from None


def _keep_owner(descriptor: int, status: os.stat_result) -> None:
    with contextlib.suppress(PermissionError):  # then the mode is all that this user may keep
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines with their ends; only a newline ends a line, and their concatenation is ``data``."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def decoded(line: bytes) -> str:
    """Return a line as text without its end; bytes that are no UTF-8 are shown as escapes."""
    return line.rstrip(b"\n").rstrip(b"\r").decode("utf-8", "backslashreplace")


def encoded(text: str) -> bytes:
    """Return the text as UTF-8. Raises SkillError for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SkillError(f"The text has a lone surrogate at character {error.start}.") from None
