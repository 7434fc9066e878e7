"""The trees of a snapshot, and their restoration into a directory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from handiwork.workspace.files.copy import copy_data
from handiwork.workspace.files.overlay_marks import OPAQUE

T = TypeVar("T")

Kind = Literal["file", "link", "dir", "pipe", "whiteout"]

_MANY = 200  # number of items from which a second thread pays off


class TreeNode(NamedTuple):
    """One name in a directory: ``mode`` has permission bits, ``size`` is in bytes.

    ``value`` is a file's SHA-256, a link's target or the digest of a directory's tree. An ``opaque`` directory hides
    the lower directory, and a "whiteout" hides one name.
    """

    kind: Kind
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    value: str = ""
    opaque: bool = False


Tree = dict[str, TreeNode]
"""The names in a directory."""


class TreeStore(Protocol):
    """The storage of files and trees."""

    def path(self, node: TreeNode) -> str:
        """Return the path of a stored file."""
        ...

    def tree(self, digest: str) -> Tree:
        """Return the names of a directory."""
        ...


def fill(store: TreeStore, folder: str, tree: Tree, owner: tuple[int, int] | None) -> None:
    """Create a tree's content in a directory, for ``owner`` (uid, gid) if given; many files use two threads."""
    files: list[tuple[str, TreeNode, tuple[int, int] | None]] = []
    folders: list[tuple[str, TreeNode]] = []
    _fill_folder(store, folder, tree, owner, files, folders)
    in_two_threads(partial(_link, store), files)
    for path, node in reversed(folders):  # after the files: a mode may forbid writing
        if node.opaque:
            os.setxattr(path, OPAQUE, b"y")
        os.chmod(path, node.mode)


def _fill_folder(
    store: TreeStore,
    folder: str,
    tree: Tree,
    owner: tuple[int, int] | None,
    files: list[tuple[str, TreeNode, tuple[int, int] | None]],
    folders: list[tuple[str, TreeNode]],
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
                _fill_folder(store, path, store.tree(node.value), owner, files, folders)
        if owner is not None and node.kind not in ("file", "whiteout"):
            os.chown(path, *owner, follow_symlinks=False)


def _link(store: TreeStore, path: str, node: TreeNode, owner: tuple[int, int] | None) -> None:
    original = store.path(node)
    try:
        if owner is None:
            os.link(original, path)
            return
    except OSError as error:
        if error.errno != errno.EMLINK:
            raise
    with open(original, "rb") as source, open(path, "x+b") as target:
        copy_data(source.fileno(), target.fileno())
        os.fchmod(target.fileno(), node.mode)
        os.utime(target.fileno(), ns=(node.mtime_ns, node.mtime_ns))
    if owner is not None:
        os.chown(path, *owner)


def in_two_threads(work: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> list[T]:
    """Return the result of ``work`` for each of the arguments, using two threads if there are many."""
    if len(arguments) < _MANY:
        return [work(*item) for item in arguments]
    half = len(arguments) // 2
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(lambda: [work(*item) for item in arguments[half:]])
        return [work(*item) for item in arguments[:half]] + other.result()
