"""The identity of processes, and whether one still runs."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process of some machine.

    ``started`` is the machine's boot, its process namespace and the start time in clock ticks: it
    distinguishes this process from one that reuses its number or has the same number on another machine.
    """

    host: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Process:
        """Return the process that runs this."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, f"{_world()}:{start_ticks(pid)}")

    def alive(self) -> bool | None:
        """Return whether the process runs, None if this machine or namespace cannot tell. A zombie does not run."""
        world, _, ticks = self.started.rpartition(":")
        if world != _world():
            return None
        return start_ticks(self.pid) == ticks


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on. Raises FileNotFoundError, ProcessLookupError."""
    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return stat.rpartition(")")[2].split()  # the name before may itself have spaces and brackets


def _world() -> str:
    """Return the boot and the process namespace, to which process numbers are relative."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.readlink('/proc/self/ns/pid')}"


def start_ticks(pid: int) -> str | None:
    """Return the start time of a process, None if there is none or it only waits to be reaped."""
    try:
        fields = stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started
