"""Snapshots of the directories a session's sandbox writes to: stores only the changes since the last snapshot.

Reads them through ``safe_open``: directory by directory, following no symbolic link.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.files.overlay_marks import is_opaque, is_whiteout
from handiwork.workspace.files.safe_open import entries, join, look, open_dir, open_dir_at, open_regular
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.tree import Tree, TreeNode, in_two_threads

BUDGET = 20 << 30
"""Default limit, in bytes, of the snapshots of all sessions."""

_TICK = 20_000_000  # nanoseconds within which two changes may get the same ctime

Signature = tuple[int, int, int, int, int]
"""Inode, ctime, mtime, size and st_mode: as long as they are equal, the content is unchanged."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot: the digest of its ``tree``, the bytes added to the store, and the number of changed paths."""

    tree: str
    size: int
    changed: int


@dataclass(frozen=True)
class WritableDir:
    """A directory that a sandbox writes to, and the ``base`` beneath it, if any."""

    upper: Path
    base: Path | None = None


@dataclass
class _State:
    """The state of a directory at the last snapshot, by path; "" is the directory itself."""

    signatures: dict[str, Signature] = field(default_factory=dict[str, Signature])
    nodes: Tree = field(default_factory=Tree)
    trees: dict[str, tuple[Tree, TreeNode]] = field(default_factory=dict[str, tuple[Tree, TreeNode]])
    since: int = 0


class Snapshots:
    """Takes snapshots of a session's ``directories``, keyed by their names in the root tree.

    ``origin`` is the tree beneath a fork's directories, ``budget`` the limit in bytes of all snapshots of the store.
    ``clean`` removes secrets from the shell state. Calls block and must not overlap.
    """

    def __init__(
        self,
        objects: Objects,
        directories: dict[str, WritableDir],
        origin: str = "",
        budget: int = BUDGET,
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.objects = objects
        self._clean = clean
        self._budget, self._room = budget, -1
        self._directories = directories
        self._origin = objects.tree(origin) if origin else {}
        self._states = {name: _State() for name in directories}
        self._last = ""
        self.shell = b""
        """The shell state passed for the last snapshot."""

    def differ(self) -> bool:
        """Return whether the files may differ from the last snapshot; they may be changing during the call."""
        return not self._is_ready() or any(self._differs(name) for name in self._directories)

    def take(
        self, shell: bytes = b"", paused: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Snapshot | None:
        """Store the current files and the shell state; return None if nothing changed or a directory is missing.

        Copies the files inside ``paused()``, entered only if some may have changed. Raises WorkspaceError if files
        cannot be read or do not fit, OSError if they cannot be stored; the store then keeps nothing of the attempt.
        """
        if not self._is_ready():
            return None
        if self._room < 0:
            self._room = self._budget - self.objects.account(0)
        if self._room < 0:
            raise WorkspaceError("snapshots take all the room they may: `handiwork gc` makes some")
        if self._last and not self.objects.has_tree(self._last):
            # Removed to make room while the session was at rest, with what the next snapshot would share with it.
            self._states, self._last = {name: _State() for name in self._directories}, ""
        before, changed = self.objects.added, 0
        self.objects.begin(self._room)
        states = dict(self._states)
        try:
            if self.differ():
                with paused():
                    changed = sum(self._update(name) for name in self._directories)
            tree = {name: state.trees[""][1] for name, state in self._states.items()}
            if shell:
                tree["shell"] = self.objects.put_bytes(self._clean(shell))
            digest = self.objects.put_tree(tree)
        except BaseException:
            self._states = states
            self._room = -1  # another process may free room before the next attempt
            self.objects.discard()
            raise
        if digest == self._last:
            return None
        self._last = digest
        self.shell = shell
        added = self.objects.added - before
        self._room = self._budget - self.objects.account(added)
        return Snapshot(digest, added, changed)

    def _is_ready(self) -> bool:
        return all(directory.upper.exists() for directory in self._directories.values())

    def _differs(self, name: str) -> bool:
        state, count = self._states[name], 0
        if _is_unsettled(state):
            return True
        for path, signature in _signatures(self._directories[name].upper):
            if state.signatures.get(path) != signature:
                return True
            count += 1
        return count < len(state.signatures)

    def _update(self, name: str) -> int:
        """Store the changes of a directory; return the number of changed paths."""
        directory, state = self._directories[name], self._states[name]
        since = time.time_ns()
        signatures = dict(_signatures(directory.upper))
        fresh = [path for path, signature in signatures.items() if self._is_new(state, path, signature)]
        nodes = {path: state.nodes[path] for path in signatures.keys() - fresh}
        nodes |= self._read(directory.upper, fresh)
        changed = sum(nodes.get(path) != state.nodes.get(path) for path in nodes.keys() | state.nodes.keys())
        trees = _Assembly(self.objects, directory.base, nodes, state.trees, self._origin.get(name)).trees()
        self._states[name] = _State(signatures, nodes, trees, since)
        return changed

    @staticmethod
    def _is_new(state: _State, path: str, signature: Signature) -> bool:
        return state.signatures.get(path) != signature or signature[1] > state.since - _TICK

    def _read(self, upper: Path, paths: list[str]) -> Tree:
        folders: dict[str, list[str]] = {}
        for path in paths:
            parent, _, name = path.rpartition("/")
            folders.setdefault(parent, []).append(name)
        results = in_two_threads(partial(self._read_folder, upper), list(folders.items()))
        return {path: node for pairs in results for path, node in pairs}

    def _read_folder(self, upper: Path, folder: str, names: list[str]) -> list[tuple[str, TreeNode]]:
        nodes: list[tuple[str, TreeNode]] = []
        with open_dir(upper, folder) as parent:
            for name in names:
                path = join(folder, name)
                try:
                    nodes.append((path, self._node(parent, name or ".")))  # the directory itself has the path ""
                except OSError as error:
                    raise WorkspaceError(f"{path!r} cannot be kept: {error.strerror}") from error
        return nodes

    def _node(self, parent: int, name: str) -> TreeNode:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return TreeNode("link", value=os.readlink(name, dir_fd=parent))
        if stat.S_ISFIFO(status.st_mode):
            return TreeNode("pipe", status.st_mode & 0o777)
        if stat.S_ISREG(status.st_mode):
            descriptor = open_regular(parent, name)
            try:
                if status.st_size == 0 and is_whiteout(descriptor):
                    return TreeNode("whiteout")
                return self.objects.put_file(descriptor)
            finally:
                os.close(descriptor)
        if not stat.S_ISDIR(status.st_mode):
            return TreeNode("whiteout")  # a device of the overlay, or a socket, which would have no listener
        with open_dir_at(parent, name) as descriptor:
            return TreeNode("dir", stat.S_IMODE(status.st_mode) & 0o1777, opaque=is_opaque(descriptor))


class _Assembly:
    """Builds trees from the nodes of a directory, layered over the session's origin."""

    def __init__(
        self,
        objects: Objects,
        base: Path | None,
        nodes: Tree,
        previous: dict[str, tuple[Tree, TreeNode]],
        origin: TreeNode | None,
    ) -> None:
        self._objects, self._base, self._nodes, self._previous = objects, base, nodes, previous
        self._lower: dict[str, TreeNode | None] = {"": origin}
        self._opaque: dict[str, bool] = {}
        self._base_hidden: dict[str, bool] = {}

    def trees(self) -> dict[str, tuple[Tree, TreeNode]]:
        """Return the names and the node of each directory, by path."""
        names: dict[str, Tree] = {path: {} for path, node in self._nodes.items() if node.kind == "dir"}
        for path, node in self._nodes.items():
            if node.kind != "dir":
                _add(names, path, node)
        folders = sorted(names)  # parents come before their children
        for path in folders:
            self._inherit(path)
        trees: dict[str, tuple[Tree, TreeNode]] = {}
        for path in reversed(folders):
            trees[path] = self._tree(path, names[path])
            if path:
                _add(names, path, trees[path][1])
        return trees

    def _inherit(self, path: str) -> None:
        """Find the origin's node beneath a directory, and whether the base shows through."""
        parent, _, name = path.rpartition("/")
        if path:
            above = self._lower[parent]
            self._lower[path] = self._objects.tree(above.value).get(name) if above else None
        lower = self._lower[path]
        if self._nodes[path].opaque or (lower is not None and lower.kind != "dir"):
            self._lower[path], self._opaque[path] = None, True
        else:
            self._opaque[path] = lower is not None and lower.opaque
        self._base_hidden[path] = self._opaque[path] or (bool(path) and self._base_hidden[parent])

    def _tree(self, path: str, names: Tree) -> tuple[Tree, TreeNode]:
        if (lower := self._lower[path]) is not None:
            names = {**self._objects.tree(lower.value), **names}
        names = {name: node for name, node in names.items() if node.kind != "whiteout" or self._hides(path, name)}
        before = self._previous.get(path)
        value = before[1].value if before and before[0] == names else self._objects.put_tree(names)
        return names, TreeNode("dir", self._nodes[path].mode, value=value, opaque=self._opaque[path])

    def _hides(self, path: str, name: str) -> bool:
        """Return whether a whiteout hides a name of the base; a whiteout that hides nothing would be listed."""
        if self._base is None or self._base_hidden[path]:
            return False
        return look(self._base, join(path, name)) is not None


def _add(names: dict[str, Tree], path: str, node: TreeNode) -> None:
    parent, _, name = path.rpartition("/")
    names[parent][name] = node


def _is_unsettled(state: _State) -> bool:
    """Return whether a file changed so shortly before its read that a later change could have the same ctime."""
    return not state.signatures or any(signature[1] > state.since - _TICK for signature in state.signatures.values())


def _signatures(root: Path) -> Iterator[tuple[str, Signature]]:
    """Yield ``root`` as "" and every path below it, with signatures, parents first."""
    yield "", _signature(root.lstat())
    pending = [""]
    while pending:
        folder = pending.pop()
        prefix = f"{folder}/" if folder else ""
        for name, status in entries(root, folder):
            yield prefix + name, _signature(status)
            if stat.S_ISDIR(status.st_mode):
                pending.append(prefix + name)


def _signature(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_mode
