"""Sockets of running sandboxes, each recorded with the process that owns it, so that leftovers can be told."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from handiwork.paths import runtime_dir
from handiwork.sandbox.limits.cgroups import group_folders, remove_groups

_GROUPS_TIMEOUT = 1.0  # seconds in which the last processes of a sandbox should have ended
_GROUPS_PAUSE = 0.02
_ENDING = 2.0  # seconds in which a server whose platform died should have ended
_PART = ".part"
_CLOSED = "0 closed"  # in the place of an owner: there never is a process 0


class Endpoint:
    """A listening unix socket named by 8 hex digits, and the record that this process owns it."""

    def __init__(self) -> None:
        folder = runtime_dir()
        owner = f"{os.getpid()} {_start_time(os.getpid())}"
        # A record has its name only when it is whole, so that one of a process that was killed names its owner.
        part = folder / f"{owner} {secrets.token_hex(4)}{_PART}"
        while True:
            self.id = secrets.token_hex(4)
            self.path = folder / self.id
            self.groups = group_folders(self.id)
            part.write_text(self._record(owner))
            try:
                os.link(part, folder / f"{self.id}.owner")
                break
            except FileExistsError:
                continue
            finally:
                part.unlink()
        self.proxy = self.path.with_name(f"{self.id}.proxy")
        """Where the sandbox's proxy may listen."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(self.path))
        self.socket.listen(64)

    async def close(self) -> None:
        """Remove the socket, the groups and the record; what cannot go yet is left to ``sweep_stale``."""
        self.socket.close()
        self.path.unlink(missing_ok=True)
        self.proxy.unlink(missing_ok=True)
        # The kernel takes a process out of its groups after its end is told, and tells nobody when.
        for _ in range(round(_GROUPS_TIMEOUT / _GROUPS_PAUSE)):
            if remove_groups(self.groups.values()):
                _remove(self.path)
                return
            await asyncio.sleep(_GROUPS_PAUSE)
        self.path.with_name(f"{self.id}.owner").write_text(self._record(_CLOSED))

    def _record(self, owner: str) -> str:
        """Name the groups too: who sweeps may be in others than the owner was."""
        return "\n".join([owner, *map(str, self.groups.values())])


def sweep_stale() -> list[str]:
    """Remove the sockets and groups of owners that are dead and return their names; living ones are left alone.

    Ends who listens on such a socket: bubblewrap's child, when its parent died just after it was made.
    """
    gone: list[str] = []
    folder = runtime_dir()
    for part in folder.glob(f"*{_PART}"):
        pid, start_time, _ = part.name.split(" ")
        if _start_time(int(pid)) != start_time:
            part.unlink(missing_ok=True)
    for record in folder.glob("*.owner"):
        try:
            owner, *groups = record.read_text().split("\n")
        except FileNotFoundError:
            continue
        pid, _, start_time = owner.partition(" ")
        if _start_time(int(pid)) != start_time:
            _end_listeners(record.with_suffix(""))
            if remove_groups(map(Path, groups)):
                _remove(record.with_suffix(""))
                gone.append(record.stem)
    return gone


def _end_listeners(path: Path) -> None:
    """End who listens on a socket; a server without a sandbox is ending already, and removes its files first."""
    deadline = time.monotonic() + _ENDING
    while listeners := list(_listeners(path)):
        if time.monotonic() > deadline:
            for pid in listeners:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


def _listeners(path: Path) -> Iterator[int]:
    lines = Path("/proc/net/unix").read_text().splitlines()
    sockets = {f"socket:[{line.split()[6]}]" for line in lines if line.endswith(f" {path}")}
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or is another user's
            if any(os.readlink(one) in sockets for one in (process / "fd").iterdir()):
                yield int(process.name)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    for kind in ("proxy", "owner"):
        path.with_name(f"{path.name}.{kind}").unlink(missing_ok=True)


def _start_time(pid: int) -> str:
    """Return when a process began, in clock ticks since boot, or "" if there is none: pids are used again."""
    try:
        # The command's name, in brackets, may hold spaces and brackets of its own.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def in_memory(data: bytes) -> int:
    """Return a descriptor from which the bytes can be read."""
    descriptor = os.memfd_create("handiwork")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
