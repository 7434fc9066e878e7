"""Counts, measures and ends the processes of a sandbox from outside, so that nothing inside can prevent it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from handiwork.process import stat_fields

_TICKS = os.sysconf("SC_CLK_TCK")
_ENDED = (FileNotFoundError, ProcessLookupError, PermissionError)
"""The process has ended, or (without a sandbox) belongs to another user, as under sudo."""

_STOPPED = "TtZX"
_STOPPING = 2.0  # seconds that a process may take to stop


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A snapshot of one process; ``started`` is in clock ticks since boot, and unique together with ``pid``."""

    pid: int
    started: int
    threads: int
    parent: int


def ticks() -> int:
    """Return the current time in clock ticks since boot."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def family(root_pid: int) -> list[ProcessInfo]:
    """Return ``root_pid`` and its descendants, parents first."""
    members = list(_read(root_pid))
    for process in members:
        # The list grows during the iteration: the children's children follow.
        members += [child for pid in _children(process.pid) for child in _read(pid)]
    return members


def end(root_pid: int, since: int) -> None:
    """Kill the descendants of ``root_pid`` that started at ``since`` (ticks) or later, even if they keep forking."""
    stopped: set[ProcessInfo] = set()
    # Stopped processes can no longer fork, so eventually there are no new ones.
    while fresh := [process for process in family(root_pid)[1:] if process.started >= since and process not in stopped]:
        for process in fresh:
            send(process, signal.SIGSTOP)
        stopped.update(fresh)
    for process in stopped:
        send(process, signal.SIGKILL)


@contextmanager
def paused(root_pid: int) -> Generator[None]:
    """Pause ``root_pid`` and its descendants; processes that were stopped before stay stopped.

    A shell that saw its program stop would continue without it, so a process gets its signal only once its parent has
    stopped, and is resumed before it.
    """
    stopped: list[ProcessInfo] = []
    try:
        while fresh := [member for member in family(root_pid) if member not in stopped and not _is_stopped(member)]:
            pids = {member.pid for member in fresh}
            generation = [member for member in fresh if member.parent not in pids]
            for process in generation:
                send(process, signal.SIGSTOP)
            stopped += generation
            _wait_until_stopped(generation)
        yield
    finally:
        for process in reversed(stopped):
            send(process, signal.SIGCONT)


def send(process: ProcessInfo, number: signal.Signals) -> None:
    """Signal the process if it is still the same one: pids are reused."""
    with suppress(*_ENDED):
        descriptor = os.pidfd_open(process.pid)
        try:
            if any(current.started == process.started for current in _read(process.pid)):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def resident(process: ProcessInfo) -> int:
    """Return the bytes of memory that killing the process would free, or more: shared memory counts too."""
    with suppress(*_ENDED):
        return _sum(Path(f"/proc/{process.pid}/status"), ("RssAnon:", "RssShmem:", "VmSwap:"))
    return 0


def proportional(process: ProcessInfo) -> int:
    """Return the process's exact share of memory in bytes; slow for a large process."""
    with suppress(*_ENDED):
        return _sum(Path(f"/proc/{process.pid}/smaps_rollup"), ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
    return 0


def _wait_until_stopped(members: list[ProcessInfo]) -> None:
    """Wait until the processes have stopped, with a limit for those that wait for a disk or the network."""
    deadline = time.monotonic() + _STOPPING
    while time.monotonic() < deadline and not all(map(_is_stopped, members)):
        time.sleep(0.0005)


def _is_stopped(process: ProcessInfo) -> bool:
    """Return whether a process is stopped or has ended."""
    with suppress(*_ENDED):
        return stat_fields(process.pid)[0] in _STOPPED
    return True


def _sum(file: Path, names: tuple[str, ...]) -> int:
    return 1024 * sum(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(names))


def _read(pid: int) -> Iterator[ProcessInfo]:
    """Yield the process, unless it has ended."""
    with suppress(*_ENDED):
        fields = stat_fields(pid)
        yield ProcessInfo(pid, int(fields[19]), int(fields[17]), int(fields[1]))


def _children(pid: int) -> Iterator[int]:
    with suppress(*_ENDED):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(*_ENDED):
                yield from map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
