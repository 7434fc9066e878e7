"""The marks in an overlay's upper layer that hide files of the layers below."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from handiwork.workspace.files.safe_open import open_dir, open_file

OPAQUE = "user.overlay.opaque"
"""The attribute of a directory that hides the lower directory; its value is then b"y"."""


def is_opaque(descriptor: int) -> bool:
    """Return whether an open directory of an upper layer hides the lower directory."""
    try:
        return os.getxattr(descriptor, OPAQUE) == b"y"
    except OSError:
        return False


def is_whiteout(descriptor: int) -> bool:
    """Return whether an open empty file is a whiteout, as written by overlays that may not create devices."""
    try:
        os.getxattr(descriptor, "user.overlay.whiteout")
    except OSError:
        return False
    return True


def hides_directory(layer: Path, path: str) -> bool:
    """Return whether a layer's directory is opaque; False if it cannot be opened."""
    try:
        with open_dir(layer, path) as descriptor:
            return is_opaque(descriptor)
    except OSError:
        return False


def hides_file(layer: Path, path: str, status: os.stat_result) -> bool:
    """Return whether a layer's entry, no directory, is a whiteout; devices and sockets count: they are never opened."""
    if stat.S_ISLNK(status.st_mode):
        return False
    if not stat.S_ISREG(status.st_mode):
        return True
    if status.st_size:
        return False
    with open_file(layer, path) as stream:
        return is_whiteout(stream.fileno())
