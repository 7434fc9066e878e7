"""Files as an overlay shows them, read from its layers on the host without mounting or following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from handiwork.workspace.files.overlay_marks import hides_directory, hides_file
from handiwork.workspace.files.safe_open import entries, is_git_name, join, look, open_file, parts_of

EntryKind = Literal["dir", "file", "link"]


@dataclass(frozen=True, slots=True)
class OverlayEntry:
    """One entry of a directory; ``size`` is in bytes, 0 for a directory.

    ``version`` changes whenever the file does: inode, and the times of its content and its status in nanoseconds.
    """

    name: str
    kind: EntryKind
    size: int = 0
    version: tuple[int, int, int] = (0, 0, 0)


class OverlayView:
    """The files of ``layers``, lowest first; paths are relative, "" is the top.

    ``mounts`` maps the path of each directory mounted below to its layers; its parents may be in no layer.
    """

    def __init__(self, layers: Sequence[Path], mounts: Mapping[str, Sequence[Path]] | None = None) -> None:
        self._layers = tuple(reversed(layers))
        self._mounts = {path: OverlayView(below) for path, below in (mounts or {}).items()}

    def entries(self, path: str = "") -> list[OverlayEntry]:
        """Return the entries of a directory, directories first, without ``.git``.

        Raises FileNotFoundError, NotADirectoryError, and WorkspaceError for a path that leads out of the view.
        """
        view, below = self._find_mount(path)
        if view is not None:
            return view.entries(below)
        layers, file = self._find(path)
        if file is not None:
            raise NotADirectoryError(f"{path!r} is no directory")
        by_name: dict[str, OverlayEntry | None] = {}
        for layer in layers:
            for name, status in entries(layer, path):
                by_name.setdefault(name, _entry(layer, join(path, name), name, status))
        for mount in self._mounts:
            parent, _, name = mount.rpartition("/")
            if parent == path:
                by_name[name] = OverlayEntry(name, "dir")
        visible = [entry for entry in by_name.values() if entry is not None and not is_git_name(entry.name)]
        return sorted(visible, key=lambda entry: (entry.kind != "dir", entry.name))

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises FileNotFoundError, IsADirectoryError, and WorkspaceError for any other kind of file or a path that
        leads out of the view.
        """
        view, below = self._find_mount(path)
        if view is not None:
            return view.open(below)
        if any(is_git_name(part) for part in path.split("/")):
            raise FileNotFoundError(f"there is no file {path!r}")
        _, layer = self._find(path)
        if layer is None:
            raise IsADirectoryError(f"{path!r} is a directory")
        return open_file(layer, path)

    def _find_mount(self, path: str) -> tuple[OverlayView | None, str]:
        for mount, view in self._mounts.items():
            if path == mount or path.startswith(f"{mount}/"):
                return view, path[len(mount) + 1 :]
        return None, path

    def _find(self, path: str) -> tuple[list[Path], Path | None]:
        """Return the layers that have the directory, topmost first, or the layer that provides the visible file."""
        layers, prefix = list(self._layers), ""
        parts = parts_of(path) if path else []
        for number, part in enumerate(parts, 1):
            prefix = join(prefix, part)
            below: list[Path] = []
            for layer in layers:
                status = look(layer, prefix)
                if status is None:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    below.append(layer)
                    if not hides_directory(layer, prefix):
                        continue
                elif not below and number == len(parts) and not hides_file(layer, prefix, status):
                    return [], layer
                break
            if not below:
                raise FileNotFoundError(f"there is no file {path!r}")
            layers = below
        return layers, None


def _entry(layer: Path, path: str, name: str, status: os.stat_result) -> OverlayEntry | None:
    if stat.S_ISDIR(status.st_mode):
        return OverlayEntry(name, "dir")
    if hides_file(layer, path, status):
        return None
    kind = "link" if stat.S_ISLNK(status.st_mode) else "file"
    return OverlayEntry(name, kind, status.st_size, (status.st_ino, status.st_mtime_ns, status.st_ctime_ns))
