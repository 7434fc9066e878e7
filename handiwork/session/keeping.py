"""Where the snapshots of sessions are kept, and what a session's files are made of."""

from __future__ import annotations

from pathlib import Path

from handiwork.sandbox.layers import WORKSPACE_LAYER, Places, upper_dir
from handiwork.sandbox.objects import Node, Objects, Tree
from handiwork.sandbox.snapshots import Snapshots
from handiwork.sandbox.workspace import Workspace

GIGABYTE = 1 << 30


def session_dir(data: Path, session_id: str) -> Path:
    """Return where a session's files are."""
    return data / "sessions" / session_id


def objects_of(data: Path) -> Objects:
    """Return the store of snapshots of a data folder."""
    return Objects(data / "snapshots")


def beside(session_dir: Path) -> Objects:
    """Return the store of snapshots that a session's folder belongs to."""
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
    for name, place in Places(session_dir, workspace.source, workspace.base, workspace.mounts).written().items():
        mode = place.base.stat().st_mode & 0o777 if place.base else 0o700
        tree[name] = Node("dir", mode, value=objects.put_tree({}))
    return objects.put_tree(tree)


def snapshots_of(places: Places, origin: str, gigabytes: int) -> Snapshots | None:
    """Return what takes a session's snapshots; None where they may take no room. Raises WorkspaceError."""
    if not gigabytes:
        return None
    return Snapshots(beside(places.session_dir), places.written(), origin, gigabytes * GIGABYTE)
