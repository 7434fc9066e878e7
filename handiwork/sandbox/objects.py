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
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from handiwork.sandbox.manifest import CHUNK
from handiwork.sandbox.safe_open import WorkspaceError

T = TypeVar("T")

Kind = Literal["file", "link", "dir", "pipe", "whiteout"]

GRACE = 3600.0
"""Seconds that what nothing refers to is kept: a session may be about to refer to it."""

_FICLONE = 0x40049409
_SMALL = 1 << 16
_MANY = 200  # files from which on a second thread is of use
_OPAQUE = "user.overlay.opaque"


class Node(NamedTuple):
    """One name in a directory: ``mode`` has permission bits, ``size`` is in bytes.

    ``value`` is a file's SHA-256, a link's target or a directory's tree. Below an ``opaque`` directory nothing of
    what it is laid over is seen, and a "whiteout" hides one name.
    """

    kind: Kind
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    value: str = ""
    opaque: bool = False


Tree = dict[str, Node]
"""The names in a directory."""


class Objects:
    """The files below ``folder``; any number of processes may add to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.added = 0
        """Bytes that this object has added to the store."""
        self._trees: dict[str, Tree] = {}

    def put_file(self, descriptor: int) -> Node:
        """Keep an open regular file as it is now."""
        found = os.fstat(descriptor)
        mode = found.st_mode & 0o777
        if found.st_size > _SMALL:
            return self._put_large(descriptor, found)
        data = os.read(descriptor, _SMALL + 1)
        node = Node("file", mode, len(data), found.st_mtime_ns, hashlib.sha256(data).hexdigest())
        self._keep(node, data)
        return node

    def put_bytes(self, data: bytes) -> Node:
        """Keep bytes that no file has."""
        node = Node("file", 0o600, len(data), 0, hashlib.sha256(data).hexdigest())
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

    def read(self, node: Node) -> bytes:
        """Return a file's bytes. Raises WorkspaceError if they are not kept any more."""
        self._check(node)
        with open(self._place(node), "rb") as file:
            return file.read()

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
            part.mkdir(mode=0o700, parents=True)
            try:
                self._fill(str(part), self._load(digest), owner)
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
        return sum(place.stat().st_size for place in self._all())

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
        freed, old = 0, time.time() - grace
        for layer in self._children("layers"):
            if layer.name.partition("-")[0] not in layers and layer.stat().st_ctime <= old:
                remove_tree(layer)
        for place in self._all():
            found = place.stat()
            if place.name not in keep and found.st_ctime <= old:
                place.unlink()
                freed += found.st_size
        return freed

    def _load(self, digest: str) -> Tree:
        try:
            data = self._tree_place(digest).read_bytes()
        except FileNotFoundError:
            raise WorkspaceError(f"snapshot {digest[:12]} was removed to make room; choose another event") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise WorkspaceError(f"snapshot {digest[:12]} is damaged; choose another event")
        return {name: Node(*node) for name, node in json.loads(data).items()}

    def _all(self) -> Iterator[Path]:
        for kind in ("files", "trees"):
            for prefix in self._children(kind):
                yield from prefix.iterdir()

    def _children(self, name: str) -> list[Path]:
        folder = self.folder / name
        return list(folder.iterdir()) if folder.is_dir() else []

    def _place(self, node: Node) -> str:
        return f"{self.folder}/files/{node.value[:2]}/{_name(node)}"  # a Path would take longer than what is done

    def _tree_place(self, digest: str) -> Path:
        return self.folder / "trees" / digest[:2] / digest

    def _has(self, node: Node) -> bool:
        """Whether the file is there; if so it is marked as used just now, by its time of change."""
        place = self._place(node)
        try:
            os.chmod(place, node.mode)
        except FileNotFoundError:
            return False
        return _is_whole(os.stat(place), node)

    def _keep(self, node: Node, data: bytes) -> None:
        """Write a small file, unless it is there: in place, as making and renaming one takes twice as long."""
        place, flags = self._place(node), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        try:
            descriptor = os.open(place, flags, 0o600)
        except FileNotFoundError:
            for prefix in range(256):  # all at once, so that this is not met again in the middle of many files
                os.makedirs(f"{self.folder}/files/{prefix:02x}", 0o700, exist_ok=True)
            self._keep(node, data)
            return
        except FileExistsError:
            if not self._has(node):
                self._write(place, data, node.mode, node.mtime_ns)
            return
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if node.mode != 0o600:
                os.fchmod(descriptor, node.mode)
            os.utime(descriptor, ns=(node.mtime_ns, node.mtime_ns))
        finally:
            os.close(descriptor)
        self.added += len(data)

    def _write(self, place: str | Path, data: bytes, mode: int, mtime_ns: int) -> None:
        part, descriptor = self._part(os.path.dirname(place))
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fchmod(descriptor, mode)
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
            os.rename(part, place)
        except BaseException:
            os.unlink(part)
            raise
        finally:
            os.close(descriptor)
        self.added += len(data)

    def _put_large(self, source: int, found: os.stat_result) -> Node:
        part, descriptor = self._part(f"{self.folder}/files/00")
        try:
            size, digest = _copy(source, descriptor)
            node = Node("file", found.st_mode & 0o777, size, found.st_mtime_ns, digest)
            if self._has(node):
                os.unlink(part)
                return node
            os.fchmod(descriptor, node.mode)
            os.utime(descriptor, ns=(node.mtime_ns, node.mtime_ns))
            os.makedirs(os.path.dirname(self._place(node)), 0o700, exist_ok=True)
            os.rename(part, self._place(node))
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part)
            raise
        finally:
            os.close(descriptor)
        self.added += size
        return node

    def _part(self, folder: str) -> tuple[str, int]:
        """Make a file, to be renamed when it is whole, and open it."""
        part, flags = f"{folder}/part-{secrets.token_hex(8)}", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        try:
            return part, os.open(part, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, 0o700, exist_ok=True)
            return part, os.open(part, flags, 0o600)

    def _check(self, node: Node) -> None:
        try:
            whole = _is_whole(os.stat(self._place(node)), node)
        except FileNotFoundError:
            whole = False
        if not whole:  # the machine may have gone down before the bytes were on the disk
            raise WorkspaceError(f"file {node.value[:12]} of a snapshot is lost; choose another event")

    def _fill(self, folder: str, tree: Tree, owner: tuple[int, int] | None) -> None:
        """Make in a directory what a tree has, the ``owner``'s if one is named: files in two threads if many."""
        files: list[tuple[str, Node, tuple[int, int] | None]] = []
        folders: list[tuple[str, Node]] = []
        self._fill_folder(folder, tree, owner, files, folders)
        in_two_threads(self._link, files)
        for path, node in reversed(folders):  # one that may not be written to has its files by now
            if node.opaque:
                os.setxattr(path, _OPAQUE, b"y")
            os.chmod(path, node.mode)

    def _fill_folder(
        self,
        folder: str,
        tree: Tree,
        owner: tuple[int, int] | None,
        files: list[tuple[str, Node, tuple[int, int] | None]],
        folders: list[tuple[str, Node]],
    ) -> None:
        for name, node in tree.items():
            path = f"{folder}/{name}"
            match node.kind:
                case "file":
                    files.append((path, node, owner))
                case "link":
                    os.symlink(node.value, path)
                case "whiteout":
                    os.mknod(path, stat.S_IFCHR, 0)
                case "pipe":
                    os.mkfifo(path, node.mode)
                case "dir":
                    os.mkdir(path, 0o700)
                    folders.append((path, node))
                    self._fill_folder(path, self._load(node.value), owner, files, folders)
            if owner is not None and node.kind not in ("file", "whiteout"):
                os.chown(path, *owner, follow_symlinks=False)

    def _link(self, path: str, node: Node, owner: tuple[int, int] | None) -> None:
        self._check(node)
        try:
            if owner is None:
                os.link(self._place(node), path)
                return
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
        shutil.copy2(self._place(node), path)
        if owner is not None:
            os.chown(path, *owner)


def in_two_threads(work: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> list[T]:
    """Return what ``work`` gives for each of the arguments, in two threads where there are many."""
    if len(arguments) < _MANY:
        return [work(*one) for one in arguments]
    half = len(arguments) // 2
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(lambda: [work(*one) for one in arguments[half:]])
        return [work(*one) for one in arguments[:half]] + other.result()


def is_opaque(descriptor: int) -> bool:
    """Whether an open directory of an upper layer hides what it is laid over."""
    try:
        return os.getxattr(descriptor, _OPAQUE) == b"y"
    except OSError:
        return False


def remove_tree(folder: Path) -> None:
    """Remove a directory with all in it, whatever its modes are; no sandbox may write to it meanwhile."""
    os.chmod(folder, 0o700)
    for path, names, _ in os.walk(folder):
        for below in (f"{path}/{name}" for name in names):
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(folder)


def _name(node: Node) -> str:
    return f"{node.value}-{node.mode:o}-{node.mtime_ns}"


def _is_whole(found: os.stat_result, node: Node) -> bool:
    return found.st_size == node.size and found.st_mtime_ns == node.mtime_ns


def _copy(source: int, target: int) -> tuple[int, str]:
    """Copy by reflink where the file system can; return size and SHA-256."""
    sha256, size, cloned = hashlib.sha256(), 0, True
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        cloned = False
    reader = target if cloned else source
    while block := os.pread(reader, CHUNK, size):
        sha256.update(block)
        size += len(block)
        while not cloned and block:
            block = block[os.write(target, block) :]
    return size, sha256.hexdigest()
