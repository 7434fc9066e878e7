"""What a directory holds, in a form that two of them can be compared in."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def listing(root: Path) -> dict[str, tuple[object, ...]]:
    """Type and mode of every path, a file's bytes and modification time, a link's target."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = Path(folder, name)
            status = path.lstat()
            mode, more = stat.S_IMODE(status.st_mode), ()
            if path.is_symlink():
                mode, more = 0, (os.readlink(path),)
            elif stat.S_ISREG(status.st_mode):
                more = (_content(path, mode), status.st_mtime_ns)
            found[str(path.relative_to(root))] = (stat.S_IFMT(status.st_mode), mode, *more)
    return found


def _content(path: Path, mode: int) -> bytes:
    """Read a file, also one that its owner may not read."""
    if not mode & 0o400:
        path.chmod(mode | 0o400)
    try:
        return path.read_bytes()
    finally:
        if not mode & 0o400:
            path.chmod(mode)
