"""The files that a session's agent works on: an overlay over a copy, a plain copy, or the user's own directory."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from typing_extensions import override

from handiwork.paths import private_dirs
from handiwork.workspace.changes import (
    Change,
    Side,
    changes_between,
    changes_of_overlay,
    changes_of_tree,
    same_content,
    side_at,
)
from handiwork.workspace.copy import Workspace, make_copy
from handiwork.workspace.files.copy import copy_data
from handiwork.workspace.files.safe_open import look
from handiwork.workspace.layers import (
    WORKSPACE_LAYER,
    SandboxPaths,
    git_layers,
    layers_of,
    mount_layer,
    upper_dir,
)
from handiwork.workspace.overlay_view import OverlayView
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import Snapshots
from handiwork.workspace.snapshots.tree import Tree, TreeNode

LayerOwner = Callable[[Path], tuple[int, int]]
"""Returns the uid and gid that the files of a snapshot's layer get, from the copy of the workspace."""

GIGABYTE = 1 << 30

_HEAD_LOG = ".git/logs/HEAD"
_REFERENCES = ("HEAD", "refs", "logs", "packed-refs", "reftable")


def snapshot_store(data: Path) -> Objects:
    """Return the snapshot store of a data folder."""
    return Objects(data / "snapshots")


@dataclass(frozen=True)
class SessionFiles(ABC):
    """The files of one session, or of one of its children.

    ``session_dir`` is the session's folder, ``source`` the user's directory. ``child`` is the subtask that works on a
    copy of its own; 0 means the session's own files. Every method raises WorkspaceError for files that are missing,
    damaged or unreadable.
    """

    session_dir: Path
    source: Path
    child: int = 0

    @property
    def folder(self) -> Path:
        """The folder of these files: the session's, or one inside it for a child."""
        return self.session_dir / "children" / str(self.child) if self.child else self.session_dir

    @property
    def workspace(self) -> Workspace:
        """The copy of the user's directory."""
        return Workspace.load(self.session_dir)

    @property
    def agent_dir(self) -> Path:
        """The workspace's path as the agent's commands see it."""
        return self.source

    @property
    def keeps_source(self) -> bool:
        """Whether the agent's files are a copy, so that nothing it does reaches the user's directory."""
        return True

    @property
    def missing(self) -> tuple[str, ...]:
        """The paths of the user's directory that the agent's files lack."""
        return self.workspace.left_out

    @property
    def history(self) -> OverlayFiles | None:
        """These files, if their earlier states can be restored."""
        return None

    def of_child(self, child: int) -> Self:
        """Return the files of a child."""
        return replace(self, child=child)

    def create(self) -> None:
        """Copy the user's directory into the session's folder."""
        make_copy(self.source, self.session_dir)

    def snapshots(self, paths: SandboxPaths, gigabytes: int, clean: Callable[[bytes], bytes]) -> Snapshots | None:
        """Return the snapshots of a sandbox with these ``paths``; None if it can have none.

        All snapshots of the data folder together may take ``gigabytes``; 0 takes none. ``clean`` removes secrets from
        the state of a shell.
        """
        return None

    @abstractmethod
    def written(self) -> list[Path]:
        """Return the existing directories that hold the agent's files: a child begins with a copy of them."""

    @abstractmethod
    def sandbox_paths(self, layer_owner: LayerOwner | None = None) -> SandboxPaths:
        """Return the paths of a sandbox on these files. Without ``layer_owner`` files keep the owners they had."""

    @abstractmethod
    def changes(self, *, ignored: bool = False) -> list[Change]:
        """Return the agent's changes to the workspace so far, sorted by path.

        ``ignored`` includes those of the files that git ignores.
        """

    @abstractmethod
    def view(self) -> OverlayView:
        """Return the files as the agent sees them."""

    @abstractmethod
    def has_commits(self) -> bool:
        """Return whether the agent may have commits that the user's repository lacks.

        Runs no git on the agent's files.
        """

    @abstractmethod
    def head_log(self) -> Side | None:
        """Return the agent's log of HEAD, which ends with the commit that its HEAD is now; None without one."""


@dataclass(frozen=True)
class InPlaceFiles(SessionFiles):
    """The user's own directory; only the agent's changes to ``.git`` go to the session's folder."""

    @property
    @override
    def keeps_source(self) -> bool:
        return False

    @property
    @override
    def missing(self) -> tuple[str, ...]:
        return ()

    @override
    def written(self) -> list[Path]:
        return []

    @override
    def sandbox_paths(self, layer_owner: LayerOwner | None = None) -> SandboxPaths:
        return SandboxPaths(self.folder, self.source)

    @override
    def changes(self, *, ignored: bool = False) -> list[Change]:
        return changes_of_tree(self.workspace, self.source, ignored=ignored)

    @override
    def view(self) -> OverlayView:
        return OverlayView([self.source])

    @override
    def has_commits(self) -> bool:
        return any(look(git_layers(self.folder) / "upper", name) for name in _REFERENCES)

    @override
    def head_log(self) -> Side | None:
        return side_at(git_layers(self.folder) / "upper", "logs/HEAD")


@dataclass(frozen=True)
class PlainCopyFiles(SessionFiles):
    """A second copy of the workspace, for commands that no sandbox keeps off the first one."""

    @property
    @override
    def agent_dir(self) -> Path:
        return self.folder / "work/workspace"

    @property
    @override
    def missing(self) -> tuple[str, ...]:
        return tuple(sorted([*self.workspace.left_out, *(f"{mount}/" for mount in self.workspace.mounts)]))

    @override
    def create(self) -> None:
        super().create()
        private_dirs(self.agent_dir.parent)
        shutil.copytree(self.workspace.base, self.agent_dir, symlinks=True, copy_function=_copy_file)

    @override
    def written(self) -> list[Path]:
        return [self.agent_dir]

    @override
    def sandbox_paths(self, layer_owner: LayerOwner | None = None) -> SandboxPaths:
        return SandboxPaths(self.folder, self.agent_dir)

    @override
    def changes(self, *, ignored: bool = False) -> list[Change]:
        return changes_of_tree(self.workspace, self.agent_dir, ignored=ignored)

    @override
    def view(self) -> OverlayView:
        return OverlayView([self.agent_dir])

    @override
    def has_commits(self) -> bool:
        return not same_content(side_at(self.session_dir / "base", _HEAD_LOG), self.head_log())

    @override
    def head_log(self) -> Side | None:
        return side_at(self.agent_dir, _HEAD_LOG)


@dataclass(frozen=True)
class OverlayFiles(SessionFiles):
    """An overlay over the copy, whose snapshots restore earlier states.

    From the bottom, its layers are the copy, the snapshot that a fork began with, and the agent's changes.
    """

    @property
    @override
    def history(self) -> OverlayFiles | None:
        return self

    @override
    def written(self) -> list[Path]:
        layers = [upper_dir(self.folder), *(self.folder / "overlay/mounts").glob("*/upper")]
        return [layer for layer in layers if layer.exists()]

    @override
    def sandbox_paths(self, layer_owner: LayerOwner | None = None) -> SandboxPaths:
        workspace = self.workspace
        layer = self._layer(workspace.tree, layer_owner and layer_owner(workspace.base))
        return SandboxPaths(self.folder, self.source, workspace.base, workspace.mounts, layer)

    @override
    def snapshots(self, paths: SandboxPaths, gigabytes: int, clean: Callable[[bytes], bytes]) -> Snapshots | None:
        if not gigabytes:
            return None
        return Snapshots(self._objects, paths.written(), self.workspace.tree, gigabytes * GIGABYTE, clean)

    @override
    def changes(self, *, ignored: bool = False) -> list[Change]:
        workspace = self.workspace
        layers = *self._workspace_layers(workspace.tree), upper_dir(self.folder)
        return changes_of_overlay(workspace, *layers, ignored=ignored)

    def view(self, tree: str | None = None) -> OverlayView:
        """Return the files as they are, or as they were in the snapshot ``tree``; "" is their beginning."""
        workspace = self.workspace
        layer = self._layer(workspace.tree if tree is None else tree)

        def upper_layers(name: str, written: Path) -> Sequence[Path]:
            return [*([layer / name] if layer else []), *([written] if tree is None else [])]

        mounts = {
            name: [workspace.source / name, *upper_layers(mount_layer(name), layers_of(self.folder, name) / "upper")]
            for name in workspace.mounts
        }
        return OverlayView([workspace.base, *upper_layers(WORKSPACE_LAYER, upper_dir(self.folder))], mounts)

    @override
    def has_commits(self) -> bool:
        layers = [*self._workspace_layers(self.workspace.tree), upper_dir(self.folder)]
        return any(look(layer, f".git/{name}") for layer in layers for name in _REFERENCES)

    @override
    def head_log(self) -> Side | None:
        layers = [upper_dir(self.folder), *reversed(self._workspace_layers(self.workspace.tree))]
        return next(filter(None, (side_at(layer, _HEAD_LOG) for layer in layers)), None)

    def changes_between(self, before: str, after: str) -> list[Change]:
        """Return the changes from one snapshot to another; "" is the beginning."""
        return changes_between(self.workspace, self._workspace_layers(before), self._workspace_layers(after))

    def untouched(self) -> str:
        """Store the snapshot of a session that has written nothing yet, and return its tree."""
        return _put_untouched(self._objects, self.sandbox_paths())

    def fork(self, session_dir: Path, tree: str) -> str:
        """Make the files of a fork that begins with a snapshot, in its new folder; return the tree it begins with."""
        workspace = self.workspace
        if not tree:
            tree = _put_untouched(
                self._objects, SandboxPaths(session_dir, self.source, workspace.base, workspace.mounts)
            )
        replace(workspace, tree=tree).save(session_dir)
        if (image := self.session_dir / "image").exists():  # the fork's start reports that its name means another one
            (session_dir / "image").write_bytes(image.read_bytes())
        self._layer(tree)
        return tree

    @property
    def _objects(self) -> Objects:
        return snapshot_store(self.session_dir.parent.parent)

    def _layer(self, tree: str, owner: tuple[int, int] | None = None) -> Path | None:
        return self._objects.layer(tree, owner) if tree else None

    def _workspace_layers(self, tree: str) -> list[Path]:
        layer = self._layer(tree)
        return [layer / WORKSPACE_LAYER] if layer else []


def _copy_file(source: str, target: str) -> None:
    """Copy a regular file with its holes and attributes."""
    with open(source, "rb") as reader, open(target, "x+b") as writer:
        copy_data(reader.fileno(), writer.fileno())
    shutil.copystat(source, target)


def _put_untouched(objects: Objects, paths: SandboxPaths) -> str:
    tree = Tree()
    for name, directory in paths.written().items():
        mode = directory.base.stat().st_mode & 0o777 if directory.base else 0o700
        tree[name] = TreeNode("dir", mode, value=objects.put_tree({}))
    return objects.put_tree(tree)
