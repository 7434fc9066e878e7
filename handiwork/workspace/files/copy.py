"""Copying of file content: by reflink if the file system supports it, else by data extents, preserving holes."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator

from handiwork.errors import WorkspaceError

_FICLONE = 0x40049409
_SMALL = 1 << 16  # bytes up to which a copy costs no more than a reflink
_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)
_CHECK_INTERVAL = 1 << 20  # bytes written between checks of the free space
_RESERVED = 20  # one part in this many of the file system stays free


class NoRoomError(WorkspaceError):
    """Files exceed the room for snapshots or the free space of the disk."""


class Room:
    """The bytes that may still be written to a folder: at most ``limit``, and only while its file system has space.

    A twentieth of the file system stays free.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self.remaining = limit
        self._folder = folder
        self._unchecked = _CHECK_INTERVAL
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Count bytes about to be written. Raises NoRoomError if they do not fit."""
        with self._lock:
            self.remaining -= size
            self._unchecked += size
            if self.remaining < 0:
                raise NoRoomError("the files do not fit into the room for snapshots: `handiwork gc` makes some")
            if self._unchecked >= _CHECK_INTERVAL:
                self._unchecked = 0
                self._check_free(size)

    def fits(self, size: int) -> bool:
        """Return whether ``size`` bytes could be written now."""
        return size <= self.remaining and size <= self._free()

    def _check_free(self, size: int) -> None:
        if self._free() < size:
            raise NoRoomError(f"the disk of {self._folder} is nearly full, so no snapshot is kept: free some space")

    def _free(self) -> int:
        stats = os.statvfs(self._folder)
        return (stats.f_bavail - stats.f_blocks // _RESERVED) * stats.f_frsize


def extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield offset and length of each run of data in an open file; the gaps between are holes."""
    at = 0
    while at < size:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
            at = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole follows
            yield at, size - at  # the file system does not report holes
            return
        if start < size:
            yield start, at - start


def is_sparse(status: os.stat_result) -> bool:
    """Return whether a file occupies less disk space than its size."""
    return status.st_blocks * 512 < status.st_size


def _clone(source: int, target: int) -> bool:
    """Reflink ``source`` to the empty file ``target``; return False if the file system cannot."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        return False
    return True


def copy_data(source: int, target: int | None, room: Room | None = None, sparse: bool = False) -> tuple[int, str]:
    """Copy an open file to an empty one open for reading and writing; return its size and the SHA-256 of its bytes.

    Without a ``target``, only compute the digest. A reflink takes nothing of the ``room``. With ``sparse``, the digest
    covers the data and its offsets and begins with an "s"; holes, however large, cost nothing.
    """
    sha256, size, done = hashlib.sha256(), os.fstat(source).st_size, 0
    if target is not None and size > _SMALL and _clone(source, target):
        return copy_data(target, None, sparse=sparse)  # the source may have changed since
    for start, length in list(extents(source, size)):
        if sparse:
            sha256.update(b"%d+%d\n" % (start, length))
        else:
            _hash_zeros(sha256, start - done)
        done = start
        while done < start + length and (block := os.pread(source, min(_CHUNK, start + length - done), done)):
            sha256.update(block)
            if target is not None:
                if room is not None:
                    room.take(len(block))
                write_at(target, block, done)
            done += len(block)
    if not sparse:
        _hash_zeros(sha256, size - done)
    if target is not None:
        os.ftruncate(target, size)
    return size, f"s{sha256.hexdigest()[1:]}" if sparse else sha256.hexdigest()


def write_at(target: int, block: bytes, at: int) -> None:
    """Write all bytes at an offset of an open file."""
    remaining = memoryview(block)
    while remaining:
        written = os.pwrite(target, remaining, at)
        remaining, at = remaining[written:], at + written


def _hash_zeros(sha256: hashlib._Hash, length: int) -> None:  # pyright: ignore[reportPrivateUsage]
    while length > 0:
        sha256.update(_ZEROS[:length])
        length -= _CHUNK
