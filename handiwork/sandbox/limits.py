"""What one sandbox may take of the machine. Root has cgroups (version 1); otherwise only processes are counted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class ResourceLimits:
    """``memory`` in bytes for all processes together, ``processes`` counts threads too."""

    memory: int = 8 << 30
    processes: int = 2048


class ControlGroups:
    """The control groups of one sandbox: none where this machine, or this user, cannot have them.

    ``folders`` is what ``group_folders`` gave.
    """

    def __init__(self, folders: Mapping[str, Path], limits: ResourceLimits) -> None:
        self.joins: list[str] = []
        """The files a process writes its pid to in order to be limited."""
        for controller, setting, value in (
            ("memory", "memory.limit_in_bytes", limits.memory),
            ("pids", "pids.max", limits.processes),
        ):
            if os.geteuid() == 0 and controller in folders:
                self._make(folders[controller], setting, value)

    def _make(self, folder: Path, setting: str, value: int) -> None:
        try:
            folder.mkdir()
            (folder / setting).write_text(str(value))
        except OSError:
            # A controller that is mounted but not ours to divide, as in some containers: the level below holds.
            _remove(folder)
            return
        self.joins.append(str(folder / "cgroup.procs"))


def group_folders(name: str) -> dict[str, Path]:
    """Return where the groups of a sandbox that this process starts belong, by controller."""
    groups = {controller: _own_group(controller) for controller in ("memory", "pids")}
    return {controller: group / f"handiwork-{name}" for controller, group in groups.items() if group is not None}


def remove_groups(folders: Iterable[Path]) -> bool:
    """Remove the groups of a sandbox that has ended; False while its last processes are still ending."""
    folders = list(folders)
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
        # Not there, or its last process is just ending: whoever asked looks whether it is gone.
        return
