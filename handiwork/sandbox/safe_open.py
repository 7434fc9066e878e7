"""Reading a tree that someone else may have written: no symbolic link is followed, nothing else is opened.

Every directory on the way is opened by its own name with O_NOFOLLOW, which needs no special kernel.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LONGEST_PATH = 4000


class WorkspaceError(Exception):
    """A workspace cannot be copied, read or applied; the text says why and what to do."""


def is_git_name(name: str) -> bool:
    """Whether a file system could take ``name`` for ``.git``: letter case and invisible characters count not."""
    if not name.isascii():
        name = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return name.lower() == ".git"


def parts_of(path: str) -> list[str]:
    """The names in a relative path. Raises WorkspaceError for one that is absolute or has "..", "." or ""."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise WorkspaceError(f"{path!r} is not a path below the workspace")
    return parts


@contextmanager
def open_dir(root: Path, path: str = "") -> Generator[int]:
    """A descriptor of the directory ``path`` below ``root``. Raises FileNotFoundError, NotADirectoryError."""
    descriptor = os.open(root, DIRECTORY)
    try:
        for part in parts_of(path) if path else []:
            below = os.open(part, DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_parent(root: Path, path: str) -> Generator[tuple[int, str]]:
    """A descriptor of the directory that holds ``path``, and the last name. Raises as ``open_dir`` does."""
    parent, _, name = path.rpartition("/")
    parts_of(path)
    with open_dir(root, parent) as descriptor:
        yield descriptor, name


def look(root: Path, path: str) -> os.stat_result | None:
    """What is at ``path`` itself; None when nothing is, or a parent is not a real directory."""
    try:
        with open_parent(root, path) as (parent, name):
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_file(root: Path, path: str) -> BinaryIO:
    """Open a regular file for reading. Raises WorkspaceError for anything else and for what cannot be read."""
    try:
        with open_parent(root, path) as (parent, name):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        raise WorkspaceError(f"{path!r} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WorkspaceError(f"{path!r} is no longer a regular file; look at the changes again")
    return os.fdopen(descriptor, "rb")


def read_link(root: Path, path: str) -> str:
    """The target of a symbolic link. Raises WorkspaceError when it is none."""
    try:
        with open_parent(root, path) as (parent, name):
            return os.readlink(name, dir_fd=parent)
    except OSError as error:
        raise WorkspaceError(f"{path!r} is no longer a symbolic link; look at the changes again") from error


def walk(root: Path, path: str = "", prune: Collection[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below the directory ``path``, parents first, without ``.git`` and the ``prune`` paths.

    Raises WorkspaceError for a directory that cannot be read.
    """
    waiting = [path]
    while waiting:
        here = waiting.pop()
        prefix = f"{here}/" if here else ""
        if len(os.fsencode(here)) > LONGEST_PATH:
            raise WorkspaceError(f"directories are nested too deeply at {here[:100]!r}...; remove them")
        for name, found in _entries(root, here):
            if is_git_name(name) or (below := prefix + name) in prune:
                continue
            yield below, found
            if stat.S_ISDIR(found.st_mode):
                waiting.append(below)


def _entries(root: Path, path: str) -> list[tuple[str, os.stat_result]]:
    try:
        with open_dir(root, path) as descriptor, os.scandir(descriptor) as entries:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []  # it went away while we were on our way
    except OSError as error:
        raise WorkspaceError(f"directory {path!r} cannot be read: {error.strerror}") from error
