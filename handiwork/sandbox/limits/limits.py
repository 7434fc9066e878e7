"""The resources one sandbox may use, and the texts that report a limit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Limit = Literal["memory", "processes", "file_size", "disk", "machine_disk", "time"]

RESERVE = 1 << 30
"""Bytes that sandboxes leave free on a file system of this machine."""

_GIB = 1 << 30


def machine_memory() -> int:
    """Return the bytes of memory of this machine, or of the container that this process is in."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            size = min(size, int(Path(file).read_text()))
        except (OSError, ValueError):
            continue  # another version of control groups, or "max"
    return size


@dataclass(frozen=True)
class ResourceLimits:
    """Limits of a whole sandbox, except ``file_size``; sizes are in bytes.

    ``processes`` counts threads too. ``cpus`` is the processor time it may use, in processors; 0 means all of them;
    either way, other programs of this machine come first. ``file_size`` limits each single file. ``disk`` limits the
    session's changed and new files, each file costing 4 KiB besides its content.
    """

    memory: int = field(default_factory=lambda: machine_memory() * 3 // 4)
    processes: int = 2048
    cpus: float = 0
    file_size: int = 8 * _GIB
    disk: int = 16 * _GIB

    def reached(self, limit: Limit) -> str:
        """Describe the limit that was reached."""
        if limit == "machine_disk":
            return (
                f"the disk of this machine is nearly full ({size_text(RESERVE)} of it must stay free): "
                "the user has to free some space, and can then resume the session"
            )
        texts: Mapping[Limit, str] = {
            "memory": f"memory limit of {size_text(self.memory)}",
            "processes": f"limit of {self.processes} processes and threads",
            "file_size": f"limit of {size_text(self.file_size)} for one file",
            "disk": f"disk limit of {size_text(self.disk)}",
            "time": "time limit",
        }
        return f"the sandbox's {texts[limit]} was reached"


def size_text(size: float) -> str:
    """Return a number of bytes in readable form, such as "1.5 GiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"
