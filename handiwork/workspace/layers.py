"""The directories a session's sandbox writes to, and the lower layers beneath them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from handiwork.errors import SandboxError
from handiwork.workspace.snapshots.store import WritableDir

WORKSPACE_LAYER, HOME_LAYER = "workspace", "home"
"""Names of these layers in a snapshot."""

_LONGEST_NAME = 255 - len("mount-")
"""Bytes that a file system takes for the name of a mount, with the prefix of ``mount_layer``."""


def upper_dir(session_dir: Path) -> Path:
    """Return the upper layer of the workspace overlay, which holds the agent's changes."""
    return session_dir / "overlay/upper"


def layers_of(session_dir: Path, mount: str) -> Path:
    """Return the folder of the overlay layers for a mounted directory (one that the copy leaves out)."""
    return session_dir / "overlay/mounts" / file_name(mount)


def file_name(mount: str) -> str:
    """Return a file name for the path of a mounted directory: its escaped path, or a digest of a long one."""
    path = os.fsencode(mount)
    name = quote(path, safe="")
    return name if len(name) <= _LONGEST_NAME else hashlib.sha256(path).hexdigest()


def home_layers(session_dir: Path) -> Path:
    """Return the folder of the home's overlay layers, used when the home is layered over a snapshot's."""
    return session_dir / "overlay/home"


def mount_layer(mount: str) -> str:
    """Return the name of a mounted directory's layer in a snapshot."""
    return f"mount-{file_name(mount)}"


def git_layers(session_dir: Path) -> Path:
    """Return the folder of the overlay layers for ``.git`` when the agent works in place."""
    return session_dir / "overlay/git"


@dataclass(frozen=True)
class SandboxPaths:
    """The paths of one sandbox's files on this machine.

    ``workspace`` is the user's directory. With ``base``, the agent works in an overlay over that pristine copy, and
    ``mounts`` are directories of the workspace, relative to it, that the copy leaves out and the sandbox overlays in
    place. Without ``base``, the agent works in the workspace itself, but its changes to ``.git`` go to
    ``session_dir``. ``layer`` is the layer of the snapshot a fork starts from, between the base and the fork's upper
    layer.
    """

    session_dir: Path
    workspace: Path
    base: Path | None = None
    mounts: Sequence[str] = ()
    layer: Path | None = None

    def check(self) -> None:
        """Raise SandboxError if the workspace, the session's folder or the base is missing."""
        for path in filter(None, (self.workspace, self.session_dir, self.base)):
            if not path.is_dir():
                raise SandboxError(
                    f"{path} is missing, so the session cannot continue: restore it or start a new session."
                )

    def has(self, mount: str) -> bool:
        """Return whether the user still has a directory that the copy leaves out; without it, an empty one is below."""
        return os.path.lexists(self.workspace / mount)

    def lowers(self) -> dict[Path, Path]:
        """Return a map from the folder of each overlay's layers to its topmost lower directory."""
        if self.base is None:
            git = self.workspace / ".git"
            return {git_layers(self.session_dir): git} if git.is_dir() else {}
        overlays = {name: layers_of(self.session_dir, name) for name in self.mounts}
        if self.layer is None:
            mounts = {layers: self.workspace / name for name, layers in overlays.items()}
            return {upper_dir(self.session_dir).parent: self.base, **mounts}
        mounts = {layers: self.layer / mount_layer(name) for name, layers in overlays.items()}
        home = {home_layers(self.session_dir): self.layer / HOME_LAYER}
        return {upper_dir(self.session_dir).parent: self.layer / WORKSPACE_LAYER, **home, **mounts}

    def written(self) -> dict[str, WritableDir]:
        """Return the directories a sandbox on a copy writes to, by their names in snapshots."""
        home = home_layers(self.session_dir) / "upper" if self.layer else self.session_dir / "home"
        directories = {
            WORKSPACE_LAYER: WritableDir(upper_dir(self.session_dir), self.base),
            HOME_LAYER: WritableDir(home),
        }
        return directories | {
            mount_layer(name): WritableDir(layers_of(self.session_dir, name) / "upper", self.workspace / name)
            for name in self.mounts
        }

    def shell_state(self) -> bytes:
        """Return the shell state saved in the snapshot; b"" if there is none."""
        file = self.layer / "shell" if self.layer else None
        return file.read_bytes() if file is not None and file.exists() else b""

    def make(self, uid: int, gid: int, *private: str) -> None:
        """Create the layer directories and the ``private`` ones, owned by the sandbox's uid and gid."""
        overlay = self.session_dir / "overlay"
        closed = [*(self.session_dir / name for name in private), overlay]
        modes: dict[Path, int] = {}
        for layers, lower in self.lowers().items():
            closed += [layers.parent, layers, layers / "work"]
            # The root of the mount takes its mode from the upper layer.
            modes[layers / "upper"] = lower.lstat().st_mode & 0o777 if os.path.lexists(lower) else 0o755
        modes = dict.fromkeys(closed, 0o700) | modes
        for directory, mode in modes.items():
            if not directory.exists():
                directory.mkdir()
                directory.chmod(mode)
                os.chown(directory, uid, gid, follow_symlinks=False)
