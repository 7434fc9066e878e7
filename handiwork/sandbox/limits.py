"""What one sandbox may take of the machine. Root has cgroups (version 1); otherwise only processes are counted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class ResourceLimits:
    """``memory`` in bytes for all processes together, ``processes`` counts threads too."""

    memory: int = 8 << 30
    processes: int = 2048


class ControlGroups:
    """The control groups of one sandbox: none where this machine, or this user, cannot have them."""

    def __init__(self, name: str, limits: ResourceLimits) -> None:
        self._folders: list[Path] = []
        self._make("memory", name, "memory.limit_in_bytes", limits.memory)
        self._make("pids", name, "pids.max", limits.processes)

    @property
    def joins(self) -> list[str]:
        """The files a process writes its pid to in order to be limited."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def remove(self) -> None:
        """Remove them; all processes must have ended."""
        for folder in self._folders:
            _remove(folder)

    def _make(self, controller: str, name: str, setting: str, value: int) -> None:
        own = _own_group(controller)
        if os.geteuid() != 0 or own is None:
            return
        folder = own / f"handiwork-{name}"
        try:
            folder.mkdir()
            (folder / setting).write_text(str(value))
        except OSError:
            # A controller that is mounted but not ours to divide, as in some containers: the level below holds.
            _remove(folder)
            return
        self._folders.append(folder)


def remove_groups(name: str) -> bool:
    """Remove the groups of a sandbox whose owner died; False while its last processes are still ending."""
    groups = [_own_group(controller) for controller in ("memory", "pids")]
    folders = [group / f"handiwork-{name}" for group in groups if group is not None]
    for folder in folders:
        _remove(folder)
    return not any(folder.exists() for folder in folders)


def _own_group(controller: str) -> Path | None:
    """The group this process is in, for a controller of version 1."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            group = _ROOT / controller / path.lstrip("/")
            return group if group.is_dir() else None
    return None


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # Not there, or its last process is just ending; an empty group costs nothing.
        return
