"""The user a sandbox runs as: the caller, or an unprivileged user if the caller is root."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from handiwork.paths import locked, write_private

_FIRST = 2_000_000_000
_COUNT = 100_000_000


def sandbox_ids(session_dir: Path) -> tuple[int, int]:
    """Return the (uid, gid) on the host for this session, the same every time.

    For root it is a number from an otherwise unused range, allocated once in each folder of sessions.
    """
    if os.geteuid() != 0:
        return os.getuid(), os.getgid()
    record, counter = session_dir / "uid", session_dir.parent / "next-uid"
    uid = _recorded(record)
    if uid is None:
        with locked(counter, flags=os.O_RDWR | os.O_CREAT) as descriptor:
            # Children that begin at the same time ask at the same time.
            uid = _recorded(record)
            if uid is None:
                uid = _next_uid(descriptor)
                write_private(record, str(uid))
    return uid, uid


def container_ids(files: Path) -> tuple[int, int]:
    """Return the (uid, gid) of a container's processes: the calling user, or for root the owner of ``files``.

    Docker mounts no directory with its owner mapped to another uid, so only the owner can write to it, and files made
    by a uid of the sandbox's own would belong to no user. Root inside has no capability and no writable root file
    system.
    """
    if os.geteuid() != 0:
        return os.getuid(), os.getgid()
    status = files.stat()
    return status.st_uid, status.st_gid


def _recorded(record: Path) -> int | None:
    # The file is empty if the platform was killed while writing it.
    return int(text) if record.exists() and (text := record.read_text()) else None


def _next_uid(counter: int) -> int:
    with open(counter, "r+", closefd=False) as file:
        # A random start keeps two folders of sessions on one machine apart.
        number = int(file.read() or secrets.randbelow(_COUNT))
        file.seek(0)
        file.truncate()
        file.write(str((number + 1) % _COUNT))
    return _FIRST + number
