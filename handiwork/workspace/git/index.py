"""Reader of git's index: the tracked paths, without running git."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_GITLINK, _SPARSE_DIRECTORY = 0o160000, 0o040000
_EXTENDED, _LONG_NAME = 0x4000, 0xFFF


class IndexFormatError(Exception):
    """A file is not an index, or is in an unsupported format; the message says how to fix it."""


@dataclass(frozen=True)
class Index:
    """Paths tracked by git, as bytes relative to the worktree."""

    files: frozenset[bytes]
    """Files and symbolic links."""

    submodules: frozenset[bytes]
    directories: frozenset[bytes]
    """Directories that hold a tracked path, and submodules."""


def parse_index(data: bytes, hash_size: int = 20) -> Index:
    """Parse the content of an index file whose object names have ``hash_size`` bytes. Raises IndexFormatError."""
    files, submodules, directories = set[bytes](), set[bytes](), set[bytes]()
    try:
        for mode, path in _entries(data, hash_size):
            kind = mode & 0o170000
            if kind == _GITLINK:
                submodules.add(path)
                directories.add(path)
            elif kind == _SPARSE_DIRECTORY:
                path = path.rstrip(b"/")
                directories.add(path)
            else:
                files.add(path)
            parent = path.rpartition(b"/")[0]
            while parent and parent not in directories:
                directories.add(parent)
                parent = parent.rpartition(b"/")[0]
    except (struct.error, ValueError, IndexError) as error:
        raise IndexFormatError("it is damaged: `git status` says more") from error
    return Index(frozenset(files), frozenset(submodules), frozenset(directories))


def _entries(data: bytes, hash_size: int) -> Iterator[tuple[int, bytes]]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise IndexFormatError("it is in a format of another version of git: `git update-index --index-version 4`")
    at, path = 12, b""
    fields = struct.Struct(f">24xI{12 + hash_size}xH")  # ten words, of which the seventh is the mode, then the hash
    for _ in range(count):
        mode, flags = fields.unpack_from(data, at)
        start = at + fields.size + (2 if flags & _EXTENDED else 0)
        if version == 4:
            removed, start = _offset(data, start)
            end = data.index(0, start)
            path = path[: len(path) - removed] + data[start:end]
            at = end + 1
        else:
            length = flags & _LONG_NAME
            end = data.index(0, start) if length == _LONG_NAME else start + length
            path = data[start:end]
            at += (end - at + 8) & ~7
        yield mode, path
    while at + 8 <= len(data) - hash_size:
        name, size = struct.unpack_from(">4sI", data, at)
        if name == b"link":
            raise IndexFormatError("it is split: `git update-index --no-split-index` makes one of it")
        at += 8 + size


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length number at ``at`` and the offset of its end."""
    byte = data[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1
