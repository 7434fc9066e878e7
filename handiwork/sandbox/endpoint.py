"""Sockets of running sandboxes, each recorded with its owning process, so that leftovers can be recognised."""

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
from handiwork.process import start_ticks
from handiwork.sandbox.limits.cgroups import group_folders, remove_groups

_GROUPS_TIMEOUT = 1.0  # seconds in which the last processes of a sandbox should end
_GROUPS_PAUSE = 0.02
_ENDING = 2.0  # seconds in which a server whose platform died should end
_PART = ".part"
_CLOSED = "0 closed"  # recorded instead of an owner: there is never a process 0


class Endpoint:
    """A listening unix socket named by 8 hex digits, and the record that this process owns it."""

    def __init__(self) -> None:
        folder = runtime_dir()
        owner = f"{os.getpid()} {start_ticks(os.getpid())}"
        # A record gets its name only once it is complete; until then the temporary file's name records the owner.
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
        """The path on which the sandbox's proxy may listen."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(self.path))
        self.socket.listen(64)

    async def close(self) -> None:
        """Remove the socket, the groups and the record; ``sweep_stale`` removes groups that are still in use."""
        self.socket.close()
        self.path.unlink(missing_ok=True)
        self.proxy.unlink(missing_ok=True)
        # The kernel reports a process's end before it takes it out of its groups, and does not signal the latter.
        for _ in range(round(_GROUPS_TIMEOUT / _GROUPS_PAUSE)):
            if remove_groups(self.groups.values()):
                _remove(self.path)
                return
            await asyncio.sleep(_GROUPS_PAUSE)
        self.path.with_name(f"{self.id}.owner").write_text(self._record(_CLOSED))

    def _record(self, owner: str) -> str:
        """Name the groups too: the sweeping process may be in other groups than the owner was."""
        return "\n".join([owner, *map(str, self.groups.values())])


def sweep_stale() -> list[str]:
    """Remove the sockets and groups of dead owners and return their names; those of living owners stay.

    Ends processes listening on such a socket: bubblewrap's child, if its parent died just after creating it.
    """
    removed: list[str] = []
    folder = runtime_dir()
    for part in folder.glob(f"*{_PART}"):
        pid, start_time, _ = part.name.split(" ")
        if start_ticks(int(pid)) != start_time:
            part.unlink(missing_ok=True)
    for record in folder.glob("*.owner"):
        try:
            owner, *groups = record.read_text().split("\n")
        except FileNotFoundError:
            continue
        pid, _, start_time = owner.partition(" ")
        if start_ticks(int(pid)) != start_time:
            _end_listeners(record.with_suffix(""))
            if remove_groups(map(Path, groups)):
                _remove(record.with_suffix(""))
                removed.append(record.stem)
    return removed


def _end_listeners(path: Path) -> None:
    """End the processes that listen on a socket; a server without a sandbox is ending already and removes its files."""
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
            if any(os.readlink(link) in sockets for link in (process / "fd").iterdir()):
                yield int(process.name)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    for kind in ("proxy", "owner"):
        path.with_name(f"{path.name}.{kind}").unlink(missing_ok=True)


def in_memory(data: bytes) -> int:
    """Return a descriptor of an anonymous in-memory file with the bytes."""
    descriptor = os.memfd_create("handiwork")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
