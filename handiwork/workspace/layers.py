"""The directories of a session that its sandbox writes to, and what of the workspace they are laid over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from handiwork.errors import SandboxError
from handiwork.workspace.snapshots.store import WritableDir

WORKSPACE_LAYER, HOME_LAYER = "workspace", "home"
"""What these are called in a snapshot."""


def upper_dir(session_dir: Path) -> Path:
    """Return where what the agent changed in its copy of the workspace is kept: an overlay's upper layer."""
    return session_dir / "overlay/upper"


def layers_of(session_dir: Path, mount: str) -> Path:
    """Return where the overlay of a directory that the copy leaves out has its layers."""
    return session_dir / "overlay/mounts" / quote(mount, safe="")


def home_layers(session_dir: Path) -> Path:
    """Return where the overlay of the home has its layers when it is laid over that of a snapshot."""
    return session_dir / "overlay/home"


def mount_layer(mount: str) -> str:
    """Return what a directory that the copy leaves out is called in a snapshot."""
    return f"mount-{quote(mount, safe='')}"


def git_layers(session_dir: Path) -> Path:
    """Return where the overlay of ``.git`` has its layers when the agent works in place."""
    return session_dir / "overlay/git"


@dataclass(frozen=True)
class SandboxPaths:
    """Where one sandbox's files are on this machine.

    ``workspace`` is the user's directory. With ``base`` the agent works on a copy over that pristine one, and
    ``mounts`` are directories of the workspace, relative to it, that the copy leaves out and that are laid under
    it; without, on the real one, but what it does to ``.git`` is kept in ``session_dir``. ``layer`` is that of the
    snapshot with which a fork began, between the base and what the fork writes.
    """

    session_dir: Path
    workspace: Path
    base: Path | None = None
    mounts: Sequence[str] = ()
    layer: Path | None = None

    def check(self) -> None:
        """Raise SandboxError if one of them is gone."""
        for path in filter(None, (self.workspace, self.session_dir, self.base)):
            if not path.is_dir():
                raise SandboxError(f"{path} is missing, so the session cannot go on: bring it back or start a new one.")

    def lowers(self) -> dict[Path, Path]:
        """Return where the layers of each overlay are, and the uppermost of what it is laid over."""
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
        """Return what a sandbox on a copy writes to, as snapshots name it."""
        home = home_layers(self.session_dir) / "upper" if self.layer else self.session_dir / "home"
        places = {WORKSPACE_LAYER: WritableDir(upper_dir(self.session_dir), self.base), HOME_LAYER: WritableDir(home)}
        return places | {
            mount_layer(name): WritableDir(layers_of(self.session_dir, name) / "upper", self.workspace / name)
            for name in self.mounts
        }

    def shell_state(self) -> bytes:
        """Return the state that the shell had in the snapshot, b"" where there is none."""
        kept = self.layer / "shell" if self.layer else None
        return kept.read_bytes() if kept is not None and kept.exists() else b""

    def make(self, uid: int, gid: int, *private: str) -> None:
        """Make the directories of the layers, and those named ``private``, and give them to the sandbox's uid."""
        overlay = self.session_dir / "overlay"
        closed = [*(self.session_dir / name for name in private), overlay]
        modes: dict[Path, int] = {}
        for layers, lower in self.lowers().items():
            closed += [layers.parent, layers, layers / "work"]
            # The mount as a whole has the mode of its upper layer.
            modes[layers / "upper"] = lower.lstat().st_mode & 0o777
        modes = dict.fromkeys(closed, 0o700) | modes
        for directory, mode in modes.items():
            if not directory.exists():
                directory.mkdir()
                directory.chmod(mode)
                os.chown(directory, uid, gid, follow_symlinks=False)
