"""Sockets of running sandboxes, each recorded with the process that owns it, so that leftovers can be told."""

from __future__ import annotations

import os
import secrets
import socket
import stat
from pathlib import Path

from handiwork.paths import runtime_dir
from handiwork.sandbox.base import SandboxError
from handiwork.sandbox.limits import remove_groups


class Endpoint:
    """A listening unix socket named by 8 hex digits, and the record that this process owns it."""

    def __init__(self) -> None:
        folder = _private_folder()
        while True:
            self.id = secrets.token_hex(4)
            self.path = folder / self.id
            try:
                owner = os.open(folder / f"{self.id}.owner", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                break
            except FileExistsError:
                continue
        with open(owner, "w") as file:
            file.write(f"{os.getpid()} {_start_time(os.getpid())}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(self.path))
        self.socket.listen(64)

    def close(self) -> None:
        """Remove the socket and its record."""
        self.socket.close()
        _remove(self.path)


def sweep_stale() -> list[str]:
    """Remove the sockets and groups of owners that are dead and return their names; living ones are left alone."""
    gone: list[str] = []
    for record in _private_folder().glob("*.owner"):
        try:
            fields = record.read_text().split()
        except FileNotFoundError:
            continue
        # An empty record is one that is just being written.
        dead = len(fields) == 2 and _start_time(int(fields[0])) != fields[1]
        if dead and remove_groups(record.stem):
            _remove(record.with_suffix(""))
            gone.append(record.stem)
    return gone


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.owner").unlink(missing_ok=True)


def _private_folder() -> Path:
    folder = runtime_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise SandboxError(f"{folder} must be a directory that only you can enter; remove it and try again.")
    return folder


def _start_time(pid: int) -> str:
    """Return when a process began, in clock ticks since boot, or "" if there is none: pids are used again."""
    try:
        # The command's name, in brackets, may hold spaces and brackets of its own.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""
