"""What a process and all that it started have used so far, read from /proc."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """One process; ``cpu`` is what it used itself, ``reaped`` what its ended children did, in seconds."""

    pid: int
    parent: int
    cpu: float
    reaped: float


def adopt_orphans() -> None:
    """Become the parent of what descendants leave behind, like a terminal's server, so that none gets lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(root: int) -> dict[int, Process]:
    """Return the processes below ``root`` by pid, zombies too; ``root`` itself is none of them."""
    found = {process.pid: process for process in _all()}
    return {pid: process for pid, process in found.items() if _is_below(pid, root, found)}


def _is_below(pid: int, root: int, found: dict[int, Process]) -> bool:
    while pid in found:
        pid = found[pid].parent
        if pid == root:
            return True
    return False


def _all() -> Iterator[Process]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                yield _process(int(name))


def _process(pid: int) -> Process:
    # The name stands in parentheses and may hold anything, parentheses and blanks too.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    parent, user, system, reaped_user, reaped_system = (int(fields[index]) for index in (1, 11, 12, 13, 14))
    return Process(pid, parent, _cpu(pid, (user + system) * TICK), (reaped_user + reaped_system) * TICK)


def _cpu(pid: int, ticks: float) -> float:
    # The process's own clock counts nanoseconds where /proc counts hundredths of a second: man clock_getcpuclockid.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return ticks


def total_cpu(processes: dict[int, Process]) -> float:
    """Return the CPU seconds of the processes and of all their children that have ended."""
    return sum(process.cpu + process.reaped for process in processes.values())


def memory(pid: int) -> int:
    """Return the bytes a process holds, with its part of what it shares (PSS); all of that where it cannot be told."""
    try:
        return _field(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")
    except PermissionError:
        return _field(Path(f"/proc/{pid}/status"), "VmRSS:")
    except (FileNotFoundError, ProcessLookupError):
        return 0


def peak_memory(pid: int) -> int:
    """Return the most bytes that were resident at once."""
    return _field(Path(f"/proc/{pid}/status"), "VmHWM:")


def _field(path: Path, name: str) -> int:
    line = next((line for line in path.read_text().splitlines() if line.startswith(name)), f"{name} 0 kB")
    return int(line.split()[1]) * 1024


def end_descendants() -> None:
    """End and reap whatever is left below this process."""
    while left := descendants(os.getpid()):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)
