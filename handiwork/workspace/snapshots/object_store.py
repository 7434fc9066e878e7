"""The content-addressed store of snapshots: files and trees, kept once for all sessions of a data folder.

A file is kept by its SHA-256, permissions and modification time, because it is hard-linked into the layers that forks
are laid over, and a link has these in common with all others. A small file is written where it belongs, and its
modification time last: without the right one it is not whole, and is written again. Everything else has its name only
when it is whole, so a process that is killed leaves nothing worse than a ``part-`` that ``sweep`` removes.
"""

from __future__ import annotations

import errno
import fcntl
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
from handiwork.workspace.files.copy import NoRoomError, Room, clone, copy_data, is_sparse
from handiwork.workspace.manifest import private_dirs
from handiwork.workspace.snapshots.tree import Tree, TreeNode, fill

GRACE = 3600.0
"""Seconds that what nothing refers to is kept: a session may be about to refer to it."""

_SMALL = 1 << 16


class Objects:
    """The files below ``folder``; any number of processes may add to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.added = 0
        """Bytes that this object has added to the store."""
        self.room: Room | None = None
        """What may be added at most; None is no limit."""
        self._new: list[tuple[str, int]] = []
        self._trees: dict[str, Tree] = {}

    def put_file(self, descriptor: int) -> TreeNode:
        """Keep an open regular file as it is now."""
        found = os.fstat(descriptor)
        mode = found.st_mode & 0o777
        if found.st_size > _SMALL:
            return self._put_large(descriptor, found)
        data = os.read(descriptor, _SMALL + 1)
        node = TreeNode("file", mode, len(data), found.st_mtime_ns, hashlib.sha256(data).hexdigest())
        self._keep(node, data)
        return node

    def put_bytes(self, data: bytes) -> TreeNode:
        """Keep bytes that no file has."""
        node = TreeNode("file", 0o600, len(data), 0, hashlib.sha256(data).hexdigest())
        self._keep(node, data)
        return node

    def put_tree(self, tree: Tree) -> str:
        """Keep the names of a directory and return what they are found by."""
        data = json.dumps({name: tree[name] for name in sorted(tree)}, separators=(",", ":")).encode()
        digest = hashlib.sha256(data).hexdigest()
        place = self._tree_place(digest)
        try:
            os.utime(place)
        except FileNotFoundError:
            self._write(place, data, 0o600, time.time_ns())
        return digest

    def tree(self, digest: str) -> Tree:
        """Return the names of a directory, and remember them. Raises WorkspaceError if they are not kept any more."""
        if digest not in self._trees:
            self._trees[digest] = self._load(digest)
        return self._trees[digest]

    def read(self, node: TreeNode) -> bytes:
        """Return a file's bytes. Raises WorkspaceError if they are not kept any more."""
        with open(self.place(node), "rb") as file:
            return file.read()

    def begin(self, left: int) -> None:
        """From now on at most ``left`` bytes are added; ``discard`` removes them again."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.room, self._new = Room(str(self.folder), left), []

    def discard(self) -> None:
        """Remove what was added since ``begin``, but for what another process used meanwhile, which marks it."""
        for place, changed in self._new:
            with suppress(FileNotFoundError):
                found = os.stat(place)
                if found.st_ctime_ns == changed:
                    os.unlink(place)
                    self.added -= _taken(found)
        self._new = []

    def layer(self, digest: str, owner: tuple[int, int] | None = None) -> Path:
        """Return a directory with all of a tree in it, to be laid under others and never written to; made once.

        With an ``owner``, a uid and gid other than one's own, all in it is theirs: copies, as links would be of one
        owner everywhere. Raises WorkspaceError if the tree is not kept any more.
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
        """Count bytes that were added and return how many the store has, about; ``recount`` makes it exact."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(self.folder / "used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            total = int(text) + added if text else self.used()
            file.seek(0)
            file.write(f"{total:20}")  # as long as before: what was truncated is brought to the disk when it is closed
        return total

    def recount(self) -> int:
        """Count what the store has and return it in bytes."""
        (self.folder / "used").unlink(missing_ok=True)
        return self.account(0)

    def used(self) -> int:
        """Return the bytes that files and trees take, without those of the file system's own."""
        return sum(_taken(place.stat()) for place in self._all())

    def reachable(self, digests: Collection[str]) -> set[str]:
        """Return the names of all objects that these trees need, as far as the trees are there."""
        found: set[str] = set()
        waiting = list(digests)
        while waiting:
            digest = waiting.pop()
            if digest in found or not self._tree_place(digest).exists():
                continue
            found.add(digest)
            for node in self._load(digest).values():
                if node.kind == "file":
                    found.add(_name(node))
                elif node.kind == "dir":
                    waiting.append(node.value)
        return found

    def sweep(self, keep: Collection[str], layers: Collection[str], grace: float = GRACE) -> int:
        """Remove the objects not in ``keep`` and the layers not in ``layers``; return the bytes of what went.

        What was used in the last ``grace`` seconds stays.
        """
        freed, now = 0, time.time()
        for layer in self._children("layers"):
            if layer.name.partition("-")[0] not in layers and abs(now - layer.stat().st_ctime) >= grace:
                # A process that is killed here must leave no layer with a name that has only some of its files.
                part = layer.with_name(f"part-{secrets.token_hex(8)}")
                layer.rename(part)
                remove_tree(part)
        for place in self._all():
            found = place.stat()
            if place.name not in keep and abs(now - found.st_ctime) >= grace:
                place.unlink()
                freed += _taken(found)
        return freed

    def _load(self, digest: str) -> Tree:
        try:
            data = self._tree_place(digest).read_bytes()
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

    def _place(self, node: TreeNode) -> str:
        return f"{self.folder}/files/{node.value[:2]}/{_name(node)}"  # a Path would take longer than what is done

    def _tree_place(self, digest: str) -> Path:
        return self.folder / "trees" / digest[:2] / digest

    def _has(self, node: TreeNode) -> bool:
        """Whether the file is there; if so it is marked as used just now, by its time of change."""
        place = self._place(node)
        try:
            os.chmod(place, node.mode)
        except FileNotFoundError:
            return False
        return _is_whole(os.stat(place), node)

    def _keep(self, node: TreeNode, data: bytes) -> None:
        """Write a small file, unless it is there: in place, as making and renaming one takes twice as long."""
        place, flags = self._place(node), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        try:
            descriptor = os.open(place, flags, 0o600)
        except FileNotFoundError:
            for prefix in range(256):  # all at once, so that this is not met again in the middle of many files
                private_dirs(self.folder / f"files/{prefix:02x}")
            self._keep(node, data)
            return
        except FileExistsError:
            if not self._has(node):
                self._write(place, data, node.mode, node.mtime_ns)
            return
        try:
            if self.room is not None:
                self.room.take(len(data))
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if node.mode != 0o600:
                os.fchmod(descriptor, node.mode)
            os.utime(descriptor, ns=(node.mtime_ns, node.mtime_ns))
            self._added(place, descriptor, len(data))
        except BaseException:
            os.unlink(place)
            raise
        finally:
            os.close(descriptor)

    def _write(self, place: str | Path, data: bytes, mode: int, mtime_ns: int) -> None:
        part, descriptor = self._part(os.path.dirname(place))
        try:
            if self.room is not None:
                self.room.take(len(data))
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fchmod(descriptor, mode)
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
            os.rename(part, place)
            self._added(place, descriptor, len(data))
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part)
            raise
        finally:
            os.close(descriptor)

    def _added(self, place: str | Path, descriptor: int, size: int) -> None:
        self.added += size
        self._new.append((str(place), os.fstat(descriptor).st_ctime_ns))

    def _put_large(self, source: int, found: os.stat_result) -> TreeNode:
        sparse, mode = is_sparse(found), found.st_mode & 0o777
        taken = _taken(found)
        if self.room is not None and not self.room.fits(taken):
            size, digest = copy_data(source, None, sparse=sparse)
            node = TreeNode("file", mode, size, found.st_mtime_ns, digest)
            if not self._has(node):
                raise NoRoomError(f"a file of {taken} bytes does not fit, so no snapshot is kept: `handiwork gc`")
            return node
        part, descriptor = self._part(f"{self.folder}/files/00")
        try:
            if clone(source, descriptor):
                size, digest = copy_data(descriptor, None, sparse=sparse)
            else:
                size, digest = copy_data(source, descriptor, self.room, sparse)
            node = TreeNode("file", mode, size, found.st_mtime_ns, digest)
            if self._has(node):
                os.unlink(part)
                return node
            os.fchmod(descriptor, node.mode)
            os.utime(descriptor, ns=(node.mtime_ns, node.mtime_ns))
            private_dirs(Path(self._place(node)).parent)
            os.rename(part, self._place(node))
            self._added(self._place(node), descriptor, taken)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part)
            raise
        finally:
            os.close(descriptor)
        return node

    def _part(self, folder: str) -> tuple[str, int]:
        """Make a file, to be renamed when it is whole, and open it."""
        part, flags = f"{folder}/part-{secrets.token_hex(8)}", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        try:
            return part, os.open(part, flags, 0o600)
        except FileNotFoundError:
            private_dirs(Path(folder))
            return part, os.open(part, flags, 0o600)

    def place(self, node: TreeNode) -> str:
        """Return where a file is kept. Raises WorkspaceError if it is not any more."""
        place = self._place(node)
        try:
            whole = _is_whole(os.stat(place), node)
        except FileNotFoundError:
            whole = False
        if not whole:  # the machine may have gone down before the bytes were on the disk
            raise WorkspaceError(f"file {node.value[:12]} of a snapshot is lost; choose another event")
        return place


def remove_tree(folder: Path) -> None:
    """Remove a directory with all in it, whatever its modes are; no sandbox may write to it meanwhile."""
    os.chmod(folder, 0o700)
    for path, names, _ in os.walk(folder):
        for below in (f"{path}/{name}" for name in names):
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(folder)


def _name(node: TreeNode) -> str:
    return f"{node.value}-{node.mode:o}-{node.mtime_ns}"


def _taken(found: os.stat_result) -> int:
    """The bytes of a file that are not holes."""
    return min(found.st_size, found.st_blocks * 512) if found.st_size > _SMALL else found.st_size


def _is_whole(found: os.stat_result, node: TreeNode) -> bool:
    return found.st_size == node.size and found.st_mtime_ns == node.mtime_ns
