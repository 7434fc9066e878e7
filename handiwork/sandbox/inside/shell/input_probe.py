"""Detects whether programs of a process group are waiting for input from their terminal."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Literal

Waiting = Literal["reads", "polls"]
"""Blocked on the terminal alone, or on the terminal and other descriptors."""

_CALLS_X86_64 = {
    0: "read",
    19: "read",
    7: "poll",
    271: "poll",
    23: "select",
    270: "select",
    232: "epoll",
    281: "epoll",
    441: "epoll",
}
_CALLS_AARCH64 = {63: "read", 65: "read", 73: "poll", 72: "select", 22: "epoll", 441: "epoll"}
_CALLS = {"x86_64": _CALLS_X86_64, "aarch64": _CALLS_AARCH64}.get(os.uname().machine, {})
_CONTROLLING_TERMINAL = os.makedev(5, 0)
_MAX_WATCHED = 1024
_POLLIN = 1


def waiting_for_terminal(group: int, terminal: int) -> Waiting | None:
    """Return how process group ``group`` waits for input from the terminal with device number ``terminal``."""
    result: Waiting | None = None
    for pid in _members(group):
        for thread in _names(f"/proc/{pid}/task"):
            try:
                waiting = _thread_wait(pid, thread, terminal)
            except (OSError, ValueError, struct.error):
                continue  # the thread has ended, runs, or may not be inspected
            if waiting == "reads":
                return "reads"
            result = waiting or result
    return result


def processes() -> Iterator[tuple[int, list[str]]]:
    """Yield every process's id with the fields of its stat file from the state on (state, parent, group, session)."""
    for name in _names("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    yield int(name), stat.read().rpartition(")")[2].split()
            except OSError:
                continue


def _members(group: int) -> list[int]:
    return [pid for pid, fields in processes() if int(fields[2]) == group]


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _thread_wait(pid: int, thread: str, terminal: int) -> Waiting | None:
    with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
        fields = file.read().split()
    call = _CALLS.get(int(fields[0]))
    if call is None:
        return None
    arguments = [int(field, 16) for field in fields[1:4]]
    if call == "read":
        descriptors = [arguments[0]]
    elif call == "poll":
        descriptors = _poll_descriptors(pid, arguments[0], arguments[1])
    elif call == "select":
        descriptors = _select_descriptors(pid, arguments[0], arguments[1])
    else:
        descriptors = _epoll_descriptors(pid, arguments[0])
    on_terminal = [fd for fd in descriptors if _is_terminal(pid, fd, terminal)]
    if not on_terminal:
        return None
    return "reads" if len(on_terminal) == len(descriptors) else "polls"


def _poll_descriptors(pid: int, address: int, count: int) -> list[int]:
    entries = struct.iter_unpack("ihh", _memory(pid, address, 8 * min(count, _MAX_WATCHED)))
    return [fd for fd, events, _ in entries if fd >= 0 and events & _POLLIN]


def _select_descriptors(pid: int, count: int, address: int) -> list[int]:
    if address == 0:
        return []
    count = min(count, _MAX_WATCHED)
    bits = int.from_bytes(_memory(pid, address, (count + 63) // 64 * 8), "little")
    return [fd for fd in range(count) if bits >> fd & 1]


def _epoll_descriptors(pid: int, epoll: int) -> list[int]:
    with open(f"/proc/{pid}/fdinfo/{epoll}", encoding="ascii") as file:
        return [int(line.split()[1]) for line in file if line.startswith("tfd:")]


def _memory(pid: int, address: int, length: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        return os.pread(fd, length, address)
    finally:
        os.close(fd)


def _is_terminal(pid: int, fd: int, terminal: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}/fd/{fd}").st_rdev in (terminal, _CONTROLLING_TERMINAL)
    except OSError:
        return False
