"""The kernel's own limits for all processes of a sandbox together, at the best level this process may use.

Control groups of version 2, if this process or the user's systemd can make one; those of version 1 as root.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from handiwork.sandbox.limits.limits import Limit, ResourceLimits

_ROOT = Path("/sys/fs/cgroup")
_UNIFIED = "unified"
"""Stands for all controllers of version 2, which share one group."""

_PERIOD = 100_000  # microseconds, the period of a group's quota
_PROBE_TIMEOUT = 5.0
_BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")

_COUNTERS: Mapping[Limit, tuple[tuple[str, str], ...]] = {
    "memory": (("memory.events", "oom_kill"), ("memory.oom_control", "oom_kill")),
    "processes": (("pids.events", "max"),),
}
"""The files, and their lines, that count how often the kernel enforced a limit."""


class ControlGroups:
    """The control groups of one sandbox; none if this machine or this user cannot have them.

    ``candidates`` is the result of ``group_folders``; ``folders`` has those that could be created, by controller.
    """

    def __init__(self, candidates: Mapping[str, Path], limits: ResourceLimits) -> None:
        self.folders: dict[str, Path] = {}
        for controller, folder in candidates.items():
            self._make(controller, folder, limits)

    @property
    def joins(self) -> list[str]:
        """The files to which a process writes its pid in order to be limited."""
        return [str(folder / "cgroup.procs") for folder in self.folders.values()]

    @property
    def counts_processes(self) -> bool:
        """True if the kernel counts all processes of the groups."""
        return "pids" in self.folders or _UNIFIED in self.folders

    @property
    def shares_cpu(self) -> bool:
        """True if the kernel divides processor time among groups."""
        return any(
            (folder / name).exists() for folder in self.folders.values() for name in ("cpu.weight", "cpu.shares")
        )

    def _make(self, controller: str, folder: Path, limits: ResourceLimits) -> None:
        required, optional = _settings(controller, limits)
        try:
            folder.mkdir()
            for name, value in required.items():
                (folder / name).write_text(value)
        except OSError:
            # A controller that is mounted but not delegated, as in some containers: the level below enforces its limit.
            _remove(folder)
            return
        for name, value in optional.items():
            if (folder / name).exists():
                (folder / name).write_text(value)
        self.folders[controller] = folder


class Counters:
    """Reports when the kernel enforced a limit of the groups in ``folders``."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._files: dict[Limit, tuple[Path, str]] = {}
        for limit, files in _COUNTERS.items():
            for folder in folders:
                for name, line in files:
                    if (folder / name).is_file():
                        self._files[limit] = (folder / name, line)
        self._seen = {limit: self._count(limit) for limit in self._files}

    def __contains__(self, limit: Limit) -> bool:
        return limit in self._files

    def risen(self, limit: Limit) -> bool:
        """Return whether a limit was reached since the last call."""
        before, self._seen[limit] = self._seen[limit], self._count(limit)
        return self._seen[limit] > before

    def _count(self, limit: Limit) -> int:
        file, line = self._files[limit]
        try:
            counts = dict(row.split() for row in file.read_text().splitlines())
        except OSError:
            return 0  # the sandbox has ended
        return int(counts.get(line, 0))


def group_folders(name: str) -> dict[str, Path]:
    """Return the folders for the groups of a sandbox that this process starts, by controller."""
    if home := _unified_home():
        return {_UNIFIED: home / f"handiwork-{name}"}
    if os.geteuid() != 0:
        return {}
    groups = {controller: _own_group(controller) for controller in ("memory", "pids", "cpu")}
    return {controller: group / f"handiwork-{name}" for controller, group in groups.items() if group is not None}


def remove_groups(folders: Iterable[Path]) -> bool:
    """Remove the groups of a sandbox that has ended; return False while its last processes are still ending."""
    folders = list(folders)
    for folder in folders:
        _remove(folder)
    return not any(folder.exists() for folder in folders)


def level() -> str:
    """Describe how the limits of sandboxes that this process starts are enforced."""
    name = f"probe-{os.getpid()}"
    folders = group_folders(name)
    groups = ControlGroups(folders, ResourceLimits())
    remove_groups(folders.values())
    if _UNIFIED in groups.folders:
        return "held by the kernel (control groups, version 2)"
    if {"memory", "pids"} <= groups.folders.keys():
        return "held by the kernel (control groups, version 1)"
    if scope(ResourceLimits())[0]:
        return "held by the kernel (control groups, version 2, made by the user's systemd)"
    return "watched (no control groups here: a program that takes memory very fast can exceed the limit for a moment)"


def scope(limits: ResourceLimits) -> tuple[list[str], dict[str, str]]:
    """Return a command prefix, and its environment, with which the user's systemd puts a command in a limited group.

    Both are empty if no such systemd runs or none is needed.
    """
    if os.geteuid() == 0 or _unified_home() or not systemd_answers():
        return [], {}
    settings = {
        "MemoryMax": limits.memory,
        "MemorySwapMax": 0,
        "TasksMax": limits.processes,
        "CPUWeight": 50,
        **({"CPUQuota": f"{limits.cpus:.0%}"} if limits.cpus else {}),
    }
    properties = [f"--property={name}={value}" for name, value in settings.items()]
    command = ["systemd-run", "--user", "--scope", "--quiet", "--collect", *properties, "--"]
    return command, {name: os.environ[name] for name in (*_BUS, "PATH") if name in os.environ}


def unified_group(pid: int) -> Path | None:
    """Return the version 2 group of a process."""
    return _group_in(Path(f"/proc/{pid}/cgroup").read_text(), "")


def groups_of(pid: int) -> list[Path]:
    """Return the groups of a process, of either version, that report when a limit is reached."""
    listing = Path(f"/proc/{pid}/cgroup").read_text()
    groups = [_group_in(listing, controller) for controller in ("", "memory", "pids")]
    return [group for group in groups if group is not None]


def _settings(controller: str, limits: ResourceLimits) -> tuple[dict[str, str], dict[str, str]]:
    """Return a group's required settings, and the optional ones, which not every kernel has."""
    quota = str(round(limits.cpus * _PERIOD)) if limits.cpus else ""
    if controller == _UNIFIED:
        cpu = {"cpu.weight": "50", **({"cpu.max": f"{quota} {_PERIOD}"} if quota else {})}
        return {"memory.max": f"{limits.memory}", "pids.max": f"{limits.processes}"}, {"memory.swap.max": "0", **cpu}
    if controller == "memory":
        return {"memory.limit_in_bytes": f"{limits.memory}"}, {"memory.memsw.limit_in_bytes": f"{limits.memory}"}
    if controller == "pids":
        return {"pids.max": f"{limits.processes}"}, {}
    return {"cpu.shares": "512"}, {"cpu.cfs_quota_us": quota} if quota else {}


def _unified_home() -> Path | None:
    """Return the version 2 group in which this process may make others: its own, or its parent."""
    own_group = unified_group(os.getpid()) if (_ROOT / "cgroup.controllers").is_file() else None
    for group in () if own_group is None else (own_group, own_group.parent):
        if group.is_relative_to(_ROOT) and os.access(group / "cgroup.procs", os.W_OK) and os.access(group, os.W_OK):
            shared = group / "cgroup.subtree_control"
            for controller in {"memory", "pids", "cpu"} - set(shared.read_text().split()):
                try:
                    shared.write_text(f"+{controller}")
                except OSError:
                    continue  # groups with processes of their own cannot delegate controllers
            if {"memory", "pids"} <= set(shared.read_text().split()):
                return group
    return None


@functools.cache
def systemd_answers() -> bool:
    """Return whether the user has a systemd that makes groups."""
    manager = Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent"), "systemd/private")
    if not (manager.exists() and shutil.which("systemd-run")):
        return False
    try:
        probe = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "--", "true"]
        return subprocess.run(probe, capture_output=True, check=False, timeout=_PROBE_TIMEOUT).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _own_group(controller: str) -> Path | None:
    """Return this process's group of a version 1 controller."""
    return _group_in(Path("/proc/self/cgroup").read_text(), controller)


def _group_in(listing: str, controller: str) -> Path | None:
    for line in listing.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            group = _ROOT / controller / path.lstrip("/")
            return group if group.is_dir() else None
    return None


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # The folder does not exist, or its last process is just ending: the caller checks.
        return
