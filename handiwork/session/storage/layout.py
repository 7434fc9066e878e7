"""The folders of sessions and their snapshots, and the layers of a session's files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from handiwork.workspace.copy import Workspace
from handiwork.workspace.layers import WORKSPACE_LAYER, SandboxPaths, upper_dir
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import Snapshots
from handiwork.workspace.snapshots.tree import Tree, TreeNode

GIGABYTE = 1 << 30

UNLISTED = "unlisted"
"""The file that marks the folder of a session that is not in the log, before its creation or after its removal."""


def session_dir(data: Path, session_id: str) -> Path:
    """Return the folder of a session's files."""
    return data / "sessions" / session_id


@contextmanager
def claimed(folder: Path) -> Generator[None]:
    """Make the folder of a session that the log does not have yet, and keep it from being removed meanwhile.

    It has the mark UNLISTED until this ends: if this process is killed before, `gc` removes the folder.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked(folder, fcntl.LOCK_SH):
        (folder / UNLISTED).touch(mode=0o600)
        yield
        (folder / UNLISTED).unlink(missing_ok=True)


@contextmanager
def locked(path: Path, how: int) -> Generator[None]:
    """Hold a lock on a file or directory. Raises BlockingIOError for LOCK_NB if another process holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def snapshots_in_use(data: Path) -> Generator[None]:
    """Hold off the collection of snapshots: some are in the store and not in the log yet. Waits while it lasts."""
    with locked(_snapshots_lock(data), fcntl.LOCK_SH):
        yield


@contextmanager
def snapshots_alone(data: Path) -> Generator[bool]:
    """Tell whether no process uses the store of snapshots; if so, none begins to as long as this lasts."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(_snapshots_lock(data), fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _snapshots_lock(data: Path) -> Path:
    place = data / "snapshots.lock"
    place.touch(mode=0o600)
    return place


def objects_of(data: Path) -> Objects:
    """Return the snapshot store of a data folder."""
    return Objects(data / "snapshots")


def beside(session_dir: Path) -> Objects:
    """Return the snapshot store that a session's folder belongs to."""
    return objects_of(session_dir.parent.parent)


def layer_of(session_dir: Path, workspace: Workspace, owner: tuple[int, int] | None = None) -> Path | None:
    """Return the layer of the snapshot that a fork began with, with all in it the ``owner``'s; None for no fork.

    Raises WorkspaceError.
    """
    return beside(session_dir).layer(workspace.tree, owner) if workspace.tree else None


def layers(session_dir: Path, workspace: Workspace) -> list[Path]:
    """Return the layers above the base of a session's workspace, the lowest first. Raises WorkspaceError."""
    layer = layer_of(session_dir, workspace)
    return [*([layer / WORKSPACE_LAYER] if layer else []), upper_dir(session_dir)]


def untouched(session_dir: Path, workspace: Workspace) -> str:
    """Return the tree of a session that has written nothing yet."""
    objects, tree = beside(session_dir), Tree()
    for name, place in SandboxPaths(session_dir, workspace.source, workspace.base, workspace.mounts).written().items():
        mode = place.base.stat().st_mode & 0o777 if place.base else 0o700
        tree[name] = TreeNode("dir", mode, value=objects.put_tree({}))
    return objects.put_tree(tree)


def snapshots_of(
    places: SandboxPaths, origin: str, gigabytes: int, clean: Callable[[bytes], bytes]
) -> Snapshots | None:
    """Return what takes a session's snapshots; None where they may take no room. Raises WorkspaceError.

    ``clean`` takes secrets out of the state of a shell.
    """
    if not gigabytes:
        return None
    return Snapshots(beside(places.session_dir), places.written(), origin, gigabytes * GIGABYTE, clean)
