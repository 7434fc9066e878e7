"""Directory trees as a stream of bytes: a line of JSON for each path, followed by a file's bytes.

Both ends of a connection to a remote daemon use it. The reader gets the stream from a sandbox: every directory of a
path is opened by its own name, no symbolic link is followed, and only the permissions of a mode are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO

Signature = tuple[int, int, int, int, int]
"""Inode, time of change, modification time, size and st_mode: as long as it is equal, so is the content."""

FILE_COST = 4096
"""Bytes counted for every path in addition to a file's content."""

_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 16
_LONGEST_PATH = 4000
_MOST = 1 << 63
_OPAQUE = "user.overlay.opaque"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeStreamError(Exception):
    """The stream was cut, or has invalid content."""


@dataclass
class TreeEntry:
    """One path: a "file", "link", "dir", "pipe" or "whiteout", or "gone", a path to remove; "end" ends the stream.

    ``size`` is in bytes, ``mode`` has permission bits. As in an overlay's upper layer, a directory may be ``opaque``.
    """

    path: str
    kind: str
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    target: str = ""
    opaque: bool = False


def scan(root: str, tree: str) -> dict[str, Signature]:
    """Return the directory ``tree`` below ``root`` and all paths in it; "" is ``root``. Raises OSError."""
    signatures, waiting = {tree: _signature(os.stat(f"{root}/{tree}", follow_symlinks=False))}, [tree]
    while waiting:
        directory = waiting.pop()
        if len(os.fsencode(directory)) > _LONGEST_PATH:
            raise TreeStreamError(f"directories are nested too deeply at {directory[:100]!r}...; remove them")
        try:
            descriptor = _open_dir(root, directory)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    signatures[path] = _signature(entry.stat(follow_symlinks=False))
                    if stat.S_ISDIR(signatures[path][4]):
                        waiting.append(path)
        except FileNotFoundError:
            continue
        finally:
            os.close(descriptor)
    return signatures


def send(stream: BinaryIO, root: str, paths: Iterable[str], removed: Iterable[str] = (), at: str = "") -> None:
    """Write the ``paths`` below ``root`` as paths below ``at``, and the removal of ``removed``; write no end."""
    prefix = f"{at}/" if at else ""
    for path in sorted(removed, reverse=True):
        _write_line(stream, TreeEntry(prefix + path, "gone"))
    folder, descriptor = "", os.open(root, _DIRECTORY)
    try:
        for path in sorted(paths):
            parent, _, name = path.rpartition("/")
            try:
                if parent != folder:
                    child = _open_dir(root, parent)
                    os.close(descriptor)
                    folder, descriptor = parent, child
                _send_one(stream, descriptor, name or ".", (prefix + path).rstrip("/"))
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed meanwhile, which the next scan finds
    finally:
        os.close(descriptor)


def send_directory(stream: BinaryIO, path: str, mode: int) -> None:
    """Write an empty directory."""
    _write_line(stream, TreeEntry(path, "dir", mode))


def send_end(stream: BinaryIO, error: str = "") -> None:
    """Write the end of the stream, with an ``error`` if there was one."""
    _write_line(stream, TreeEntry("", "end", target=error))
    stream.flush()


def receive(
    stream: BinaryIO, root: str, owner: tuple[int, int] | None, limit: int, trees: Collection[str] | None = None
) -> int:
    """Create the stream's paths below ``root`` and return their number.

    All belong to ``owner``, uid and gid, if one is given. Files may have ``limit`` bytes together; paths must be those
    of ``trees`` or below. Raises TreeStreamError, OSError.
    """
    count, writer = 0, _EntryWriter(root, owner)
    try:
        for node in _nodes(stream):
            if trees is not None and not any(node.path == tree or node.path.startswith(f"{tree}/") for tree in trees):
                raise TreeStreamError(f"{node.path!r} is not among the requested paths")
            limit -= node.size
            if limit < 0:
                raise TreeStreamError("the files exceed the limit of bytes")
            writer.write(node, stream)
            count += 1
    finally:
        writer.close()
    return count


def _nodes(stream: BinaryIO) -> Iterator[TreeEntry]:
    """Yield the entries up to the end; the caller reads a file's bytes before it asks for the next entry."""
    while True:
        line = stream.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise TreeStreamError("the stream was cut")
        try:
            node = TreeEntry(**json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise TreeStreamError("the stream has an invalid line") from error
        if not _is_valid(node):
            raise TreeStreamError("the stream has a line with invalid values")
        if node.kind == "end":
            if node.target:
                raise TreeStreamError(node.target)
            return
        if any(part in ("", ".", "..") or "\0" in part for part in node.path.split("/")):
            raise TreeStreamError(f"{node.path!r} is not a valid path")
        yield node


def _is_valid(node: TreeEntry) -> bool:
    """Return whether every value has its type and is acceptable to the system: the line is not trusted."""
    texts, numbers = (node.path, node.kind, node.target), (node.mode, node.size, node.mtime_ns)
    if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
        return False
    try:
        encoded = [os.fsencode(text) for text in texts]
    except UnicodeEncodeError:
        return False
    return (
        b"\0" not in encoded[2] and 0 <= node.size < _MOST and abs(node.mtime_ns) < _MOST and type(node.opaque) is bool
    )


def _write_line(stream: BinaryIO, node: TreeEntry) -> None:
    stream.write(json.dumps(asdict(node)).encode() + b"\n")


def _send_one(stream: BinaryIO, parent: int, name: str, path: str) -> None:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = status.st_mode & 0o777
    if stat.S_ISLNK(status.st_mode):
        _write_line(stream, TreeEntry(path, "link", target=os.readlink(name, dir_fd=parent)))
    elif stat.S_ISFIFO(status.st_mode):
        _write_line(stream, TreeEntry(path, "pipe", mode))
    elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        _write_line(stream, TreeEntry(path, "whiteout"))
    elif stat.S_ISDIR(status.st_mode):
        descriptor = _open(name, _DIRECTORY, parent)
        try:
            _write_line(stream, TreeEntry(path, "dir", status.st_mode & 0o1777, opaque=_is_opaque(descriptor)))
        finally:
            os.close(descriptor)
    elif stat.S_ISREG(status.st_mode):
        with open(_open(name, _FILE, parent), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            _write_line(stream, TreeEntry(path, "file", mode, status.st_size, status.st_mtime_ns))
            _send_bytes(stream, file, status.st_size)
    # The remaining kind is sockets, on which no process would listen.


def _send_bytes(stream: BinaryIO, file: BinaryIO, size: int) -> None:
    """Write exactly ``size`` bytes, even if the file became shorter: changed files are sent again."""
    while size:
        data = file.read(min(size, _CHUNK)) or bytes(min(size, _CHUNK))
        stream.write(data)
        size -= len(data)


class _EntryWriter:
    """Creates entries below ``root``; directory modes are set last, as they may forbid writing."""

    def __init__(self, root: str, owner: tuple[int, int] | None) -> None:
        self._root, self._owner = root, owner
        self._folder: str = ""
        self._descriptor = os.open(root, _DIRECTORY)
        self._modes: dict[str, int] = {}

    def write(self, node: TreeEntry, stream: BinaryIO) -> None:
        folder, _, name = node.path.rpartition("/")
        try:
            parent = self._enter(folder)
        except (FileNotFoundError, NotADirectoryError):
            if node.kind == "gone":
                return  # it existed too briefly to be sent
            raise
        if node.kind == "dir":
            self._make_directory(parent, name, node)
            return
        self._modes.pop(node.path, None)
        _remove(parent, name)
        match node.kind:
            case "file":
                self._write_file(parent, name, node, stream)
            case "link":
                os.symlink(node.target, name, dir_fd=parent)
            case "pipe":
                os.mkfifo(name, node.mode & 0o777, dir_fd=parent)
            case "whiteout":
                os.mknod(name, stat.S_IFCHR, 0, dir_fd=parent)
            case "gone":
                return
            case _:
                raise TreeStreamError(f"{node.path!r} is of an unknown kind")
        if self._owner is not None and node.kind != "file":
            os.chown(name, *self._owner, dir_fd=parent, follow_symlinks=False)

    def close(self) -> None:
        for path in sorted(self._modes, reverse=True):
            folder, _, name = path.rpartition("/")
            os.chmod(name, self._modes[path], dir_fd=self._enter(folder))
        os.close(self._descriptor)

    def _enter(self, folder: str) -> int:
        """Open a directory, which is made writable until ``close``."""
        if folder != self._folder:
            descriptor, path = os.open(self._root, _DIRECTORY), ""
            for part in folder.split("/") if folder else ():
                path = f"{path}/{part}" if path else part
                try:
                    self._make_writable(descriptor, part, path)
                    child = os.open(part, _DIRECTORY, dir_fd=descriptor)
                finally:
                    os.close(descriptor)
                descriptor = child
            os.close(self._descriptor)
            self._folder, self._descriptor = folder, descriptor
        return self._descriptor

    def _make_writable(self, parent: int, name: str, path: str) -> None:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            self._modes.setdefault(path, stat.S_IMODE(mode))
            os.chmod(name, stat.S_IMODE(mode) | 0o700, dir_fd=parent)

    def _make_directory(self, parent: int, name: str, node: TreeEntry) -> None:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            status = None
        if status is None or not stat.S_ISDIR(status.st_mode):
            _remove(parent, name)
            os.mkdir(name, 0o700, dir_fd=parent)
        else:
            self._make_writable(parent, name, node.path)
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            if node.opaque:
                os.setxattr(descriptor, _OPAQUE, b"y")
            elif _is_opaque(descriptor):
                os.removexattr(descriptor, _OPAQUE)
            if self._owner is not None:
                os.fchown(descriptor, *self._owner)
        finally:
            os.close(descriptor)
        self._modes[node.path] = node.mode & 0o1777

    def _write_file(self, parent: int, name: str, node: TreeEntry, stream: BinaryIO) -> None:
        with open(os.open(name, _NEW, 0o600, dir_fd=parent), "wb") as file:
            remaining = node.size
            while remaining:
                data = stream.read(min(remaining, _CHUNK))
                if not data:
                    raise TreeStreamError("the stream was cut")
                file.write(data)
                remaining -= len(data)
            file.flush()
            if self._owner is not None:
                os.fchown(file.fileno(), *self._owner)
            os.fchmod(file.fileno(), node.mode & 0o777)
            os.utime(file.fileno(), ns=(node.mtime_ns, node.mtime_ns))


def _remove(parent: int, name: str) -> None:
    """Remove the path if it exists."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(name, dir_fd=parent)
    else:
        os.unlink(name, dir_fd=parent)


def _open_dir(root: str, path: str) -> int:
    descriptor = os.open(root, _DIRECTORY)
    for part in path.split("/") if path else ():
        try:
            child = _open(part, _DIRECTORY, descriptor)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _open(name: str, flags: int, parent: int) -> int:
    """Open the path, even if its owner, this process's user, has no permission."""
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        os.chmod(name, stat.S_IMODE(mode) | 0o500, dir_fd=parent)
        try:
            return os.open(name, flags, dir_fd=parent)
        finally:
            os.chmod(name, stat.S_IMODE(mode), dir_fd=parent)


def _is_opaque(descriptor: int) -> bool:
    try:
        return os.getxattr(descriptor, _OPAQUE) == b"y"
    except OSError:
        return False


def _signature(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_mode
