"""The content-addressed store of snapshots: files and trees, stored once for all sessions of a data folder.

The key of a file is its SHA-256, permissions and modification time, because the lower layers of forks hard-link to it
and hard links share these attributes. A small file is written in place and gets its modification time last: with a
wrong one it is incomplete, and is written again. Everything else gets its name only once complete, so a killed process
leaves nothing worse than a ``part-`` that ``sweep`` removes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.paths import locked, private_dirs
from handiwork.workspace.files.copy import NoRoomError, Room, copy_data, is_sparse, write_at
from handiwork.workspace.snapshots.tree import Tree, TreeNode, fill

GRACE = 3600.0
"""Seconds for which unreferenced objects are kept: a session may be about to refer to them."""

_SMALL = 1 << 16


class Objects:
    """The object store in ``folder``; any number of processes may add to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.added = 0
        """Bytes that this instance has added to the store."""
        self.room: Room | None = None
        """The room for additions; None means no limit."""
        self._new: list[tuple[str, int]] = []
        self._trees: dict[str, Tree] = {}

    def put_file(self, descriptor: int) -> TreeNode:
        """Store the current content of an open regular file."""
        status = os.fstat(descriptor)
        mode = status.st_mode & 0o777
        if status.st_size > _SMALL:
            return self._put_large(descriptor, status)
        data = os.read(descriptor, _SMALL + 1)
        node = TreeNode("file", mode, len(data), status.st_mtime_ns, hashlib.sha256(data).hexdigest())
        self._put_small(node, data)
        return node

    def put_bytes(self, data: bytes) -> TreeNode:
        """Store bytes that come from no file."""
        node = TreeNode("file", 0o600, len(data), 0, hashlib.sha256(data).hexdigest())
        self._put_small(node, data)
        return node

    def put_tree(self, tree: Tree) -> str:
        """Store a directory's tree and return its digest."""
        data = json.dumps({name: tree[name] for name in sorted(tree)}, separators=(",", ":")).encode()
        digest = hashlib.sha256(data).hexdigest()
        path = self._tree_path(digest)
        try:
            os.utime(path)
        except FileNotFoundError:
            self._write(path, data, 0o600, time.time_ns())
        return digest

    def tree(self, digest: str) -> Tree:
        """Return a directory's tree, cached in memory. Raises WorkspaceError if it is missing or damaged."""
        if digest not in self._trees:
            self._trees[digest] = self._load(digest)
        return self._trees[digest]

    def has_tree(self, digest: str) -> bool:
        """Return whether a tree is still stored."""
        return self._tree_path(digest).exists()

    def read(self, node: TreeNode) -> bytes:
        """Return a file's bytes. Raises WorkspaceError if they are no longer stored."""
        with open(self.path(node), "rb") as file:
            return file.read()

    def begin(self, limit: int) -> None:
        """Limit further additions to ``limit`` bytes; ``discard`` removes them again."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.room, self._new = Room(str(self.folder), limit), []

    def discard(self) -> None:
        """Remove objects added since ``begin``, except those marked by another process's use: their ctime differs."""
        for path, ctime_ns in self._new:
            with suppress(FileNotFoundError):
                status = os.stat(path)
                if status.st_ctime_ns == ctime_ns:
                    os.unlink(path)
                    self.added -= _disk_size(status)
        self._new = []

    def layer(self, digest: str, owner: tuple[int, int] | None = None) -> Path:
        """Return a directory with a tree's files, for use as a read-only lower layer; created on first use.

        If ``owner`` (uid, gid) differs from the process's own, the files belong to it and are copies, because hard
        links share one owner. Raises WorkspaceError if the tree is no longer stored.
        """
        if owner == (os.geteuid(), os.getegid()):
            owner = None
        target = self.folder / "layers" / (digest if owner is None else f"{digest}-{owner[0]}-{owner[1]}")
        if not target.exists():
            part = target.with_name(f"part-{secrets.token_hex(8)}")
            private_dirs(part)
            try:
                fill(self, str(part), self._load(digest), owner)
                part.rename(target)
            except BaseException as error:
                remove_tree(part)
                if not (isinstance(error, OSError) and target.exists()):  # else another process was faster
                    raise
        return target

    def account(self, added: int) -> int:
        """Add to the byte count of the store and return it; the count is approximate until ``recount``."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT
        with locked(self.folder / "used", flags=flags) as descriptor, open(descriptor, "r+", closefd=False) as file:
            text = file.read()
            total = int(text) + added if text else self.used()
            file.seek(0)
            file.write(f"{total:20}")  # fixed length: closing a truncated file would sync it to disk
        return total

    def recount(self) -> int:
        """Recount the bytes in the store and return them."""
        (self.folder / "used").unlink(missing_ok=True)
        return self.account(0)

    def used(self) -> int:
        """Return the bytes of files and trees, without file system overhead."""
        return sum(_disk_size(path.stat()) for path in self._all())

    def reachable(self, digests: Collection[str]) -> set[str]:
        """Return the names of all objects reachable from these trees, skipping missing trees."""
        names: set[str] = set()
        pending = list(digests)
        while pending:
            digest = pending.pop()
            if digest in names or not self._tree_path(digest).exists():
                continue
            names.add(digest)
            for node in self._load(digest).values():
                if node.kind == "file":
                    names.add(_name(node))
                elif node.kind == "dir":
                    pending.append(node.value)
        return names

    def sweep(self, keep: Collection[str], layers: Collection[str], grace: float = GRACE) -> int:
        """Remove objects not in ``keep`` and layers not in ``layers``; return the bytes freed from objects.

        Keeps everything used in the last ``grace`` seconds.
        """
        freed, now = 0, time.time()
        for layer in self._children("layers"):
            if layer.name.partition("-")[0] not in layers and abs(now - layer.stat().st_ctime) >= grace:
                # A process killed here must not leave an incomplete layer under a valid name.
                part = layer.with_name(f"part-{secrets.token_hex(8)}")
                layer.rename(part)
                remove_tree(part)
        for path in self._all():
            status = path.stat()
            if path.name not in keep and abs(now - status.st_ctime) >= grace:
                path.unlink()
                freed += _disk_size(status)
        return freed

    def _load(self, digest: str) -> Tree:
        try:
            data = self._tree_path(digest).read_bytes()
        except FileNotFoundError:
            raise WorkspaceError(f"snapshot {digest[:12]} was removed to make room; choose another event") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise WorkspaceError(f"snapshot {digest[:12]} is damaged; choose another event")
        return {name: TreeNode(*node) for name, node in json.loads(data).items()}

    def _all(self) -> Iterator[Path]:
        for kind in ("files", "trees"):
            for prefix in self._children(kind):
                yield from prefix.iterdir()

    def _children(self, name: str) -> list[Path]:
        folder = self.folder / name
        return list(folder.iterdir()) if folder.is_dir() else []

    def _file_path(self, node: TreeNode) -> str:
        return f"{self.folder}/files/{node.value[:2]}/{_name(node)}"  # a Path costs more than the file operation

    def _tree_path(self, digest: str) -> Path:
        return self.folder / "trees" / digest[:2] / digest

    def _has(self, node: TreeNode) -> bool:
        """Return whether the file is stored completely; mark an existing one as used by updating its ctime."""
        path = self._file_path(node)
        try:
            os.chmod(path, node.mode)
        except FileNotFoundError:
            return False
        return _is_complete(os.stat(path), node)

    def _put_small(self, node: TreeNode, data: bytes) -> None:
        """Write a small file unless it exists: in place, because a temporary file and a rename take twice as long."""
        path, flags = self._file_path(node), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            for prefix in range(256):  # all at once, to avoid repeating this for every prefix
                private_dirs(self.folder / f"files/{prefix:02x}")
            self._put_small(node, data)
            return
        except FileExistsError:
            if not self._has(node):
                self._write(path, data, node.mode, node.mtime_ns)
            return
        try:
            if self.room is not None:
                self.room.take(len(data))
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if node.mode != 0o600:
                os.fchmod(descriptor, node.mode)
            os.utime(descriptor, ns=(node.mtime_ns, node.mtime_ns))
            self._record_addition(path, descriptor, len(data))
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)

    def _write(self, path: str | Path, data: bytes, mode: int, mtime_ns: int) -> None:
        part, descriptor = self._part(os.path.dirname(path))
        try:
            if self.room is not None:
                self.room.take(len(data))
            write_at(descriptor, data, 0)
            os.fchmod(descriptor, mode)
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
            os.rename(part, path)
            self._record_addition(path, descriptor, len(data))
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part)
            raise
        finally:
            os.close(descriptor)

    def _record_addition(self, path: str | Path, descriptor: int, size: int) -> None:
        self.added += size
        self._new.append((str(path), os.fstat(descriptor).st_ctime_ns))

    def _put_large(self, source: int, status: os.stat_result) -> TreeNode:
        sparse, mode = is_sparse(status), status.st_mode & 0o777
        disk_size = _disk_size(status)
        if self.room is not None and not self.room.fits(disk_size):
            size, digest = copy_data(source, None, sparse=sparse)
            node = TreeNode("file", mode, size, status.st_mtime_ns, digest)
            if not self._has(node):
                raise NoRoomError(f"a file of {disk_size} bytes does not fit, so no snapshot is kept: `handiwork gc`")
            return node
        part, descriptor = self._part(f"{self.folder}/files/00")
        try:
            size, digest = copy_data(source, descriptor, self.room, sparse)
            node = TreeNode("file", mode, size, status.st_mtime_ns, digest)
            if self._has(node):
                os.unlink(part)
                return node
            os.fchmod(descriptor, node.mode)
            os.utime(descriptor, ns=(node.mtime_ns, node.mtime_ns))
            private_dirs(Path(self._file_path(node)).parent)
            os.rename(part, self._file_path(node))
            self._record_addition(self._file_path(node), descriptor, disk_size)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part)
            raise
        finally:
            os.close(descriptor)
        return node

    def _part(self, folder: str) -> tuple[str, int]:
        """Create and open a temporary file, to be renamed once complete."""
        part, flags = f"{folder}/part-{secrets.token_hex(8)}", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        try:
            return part, os.open(part, flags, 0o600)
        except FileNotFoundError:
            private_dirs(Path(folder))
            return part, os.open(part, flags, 0o600)

    def path(self, node: TreeNode) -> str:
        """Return the path of a stored file. Raises WorkspaceError if it is missing or incomplete."""
        path = self._file_path(node)
        try:
            complete = _is_complete(os.stat(path), node)
        except FileNotFoundError:
            complete = False
        if not complete:  # the machine may have crashed before the bytes reached the disk
            raise WorkspaceError(f"file {node.value[:12]} of a snapshot is lost; choose another event")
        return path


def remove_tree(folder: Path) -> None:
    """Remove a directory tree regardless of modes; no sandbox may write to it during the call."""
    os.chmod(folder, 0o700)
    for path, names, _ in os.walk(folder):
        for below in (f"{path}/{name}" for name in names):
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(folder)


def _name(node: TreeNode) -> str:
    return f"{node.value}-{node.mode:o}-{node.mtime_ns}"


def _disk_size(status: os.stat_result) -> int:
    """Return the bytes of a file, without holes if it is large."""
    return min(status.st_size, status.st_blocks * 512) if status.st_size > _SMALL else status.st_size


def _is_complete(status: os.stat_result, node: TreeNode) -> bool:
    return status.st_size == node.size and status.st_mtime_ns == node.mtime_ns
