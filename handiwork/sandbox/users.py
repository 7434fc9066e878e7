"""As whom a sandbox runs: the calling user, or when that is root somebody who is not."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from handiwork.workspace.manifest import write_private

_FIRST = 2_000_000_000
_COUNT = 100_000_000


def sandbox_ids(session_dir: Path) -> tuple[int, int]:
    """Return the (uid, gid) on the host for this session, the same every time.

    For root it is a number from a range nobody else uses, given out once in each folder of sessions.
    """
    if os.geteuid() != 0:
        return os.getuid(), os.getgid()
    remembered = session_dir / "uid"
    # It is empty if the platform was killed while it wrote.
    if remembered.exists() and (text := remembered.read_text()):
        uid = int(text)
    else:
        uid = _next_uid(session_dir.parent / "next-uid")
        write_private(remembered, str(uid))
    return uid, uid


def container_ids(files: Path) -> tuple[int, int]:
    """Return the (uid, gid) of a container's processes: the calling user, or when that is root the owner of ``files``.

    Docker mounts no directory with its owner mapped to another uid, so only the owner can write to it, and what a
    uid of the sandbox's own made would be nobody's. Root inside has no capability and no root file system to write to.
    """
    if os.geteuid() != 0:
        return os.getuid(), os.getgid()
    found = files.stat()
    return found.st_uid, found.st_gid


def _next_uid(counter: Path) -> int:
    with open(os.open(counter, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # Beginning anywhere keeps two folders of sessions on one machine apart.
        number = int(file.read() or secrets.randbelow(_COUNT))
        file.seek(0)
        file.truncate()
        file.write(str((number + 1) % _COUNT))
    return _FIRST + number
