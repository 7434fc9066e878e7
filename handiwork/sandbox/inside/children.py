"""Makes this process the parent of its descendants' orphans, and reaps them."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal

from .shell.input_probe import processes

_PR_SET_CHILD_SUBREAPER = 36


class Children:
    """Reaps every child that ends, except those in ``owned_pids``, which their starters wait for."""

    def __init__(self) -> None:
        self.owned_pids: set[int] = set()

    def open(self) -> None:
        """Start reaping; the event loop must run in the main thread."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def close(self) -> None:
        """Kill the remaining adopted processes and stop."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)
        while adopted := [pid for pid in _children() if pid not in self.owned_pids]:
            for pid in adopted:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _reap(self) -> None:
        for pid in _children():
            if pid not in self.owned_pids:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def give_way(pid: int) -> None:
    """Make the kernel kill this child and its descendants, rather than this process, when memory is short."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")


def signal_session(session: int, *numbers: int) -> bool:
    """Send these signals to all processes of a session; return False if it has none."""
    pids = [pid for pid, fields in processes() if int(fields[3]) == session]
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
    return bool(pids)


def _children() -> list[int]:
    pids: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
            pids += map(int, file.read().split())
    return pids
