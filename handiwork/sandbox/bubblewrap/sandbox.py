"""The default sandbox: bubblewrap, without a daemon, an image or a network."""

from __future__ import annotations

import asyncio
import json
import marshal
import os
import resource
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.process import stat_fields
from handiwork.sandbox import bundle
from handiwork.sandbox.bubblewrap import launcher, seccomp
from handiwork.sandbox.bubblewrap.mounts import UID, MountPlan
from handiwork.sandbox.client import Client, SaveBlob
from handiwork.sandbox.egress.inside import find_certificates, server_arguments
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.endpoint import Endpoint, in_memory
from handiwork.sandbox.limits.cgroups import ControlGroups, Counters, scope, unified_group
from handiwork.sandbox.limits.disk import Disk
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.sandbox.limits.monitor import LimitMonitor
from handiwork.sandbox.served import ServedSandbox
from handiwork.sandbox.toolchains import check_mounts, check_no_daemon, find_toolchains
from handiwork.sandbox.users import sandbox_ids
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.snapshots.store import Snapshots

_NAMESPACES = (
    "--unshare-user --disable-userns --unshare-pid --unshare-net --unshare-ipc --unshare-uts "
    f"--unshare-cgroup-try --uid {UID} --gid {UID} --hostname sandbox --as-pid-1 --new-session "
    "--die-with-parent --clearenv"
).split()

_NICE = 5
"""The sandbox's niceness if groups cannot divide processor time: other programs come first."""


class BubblewrapSandbox(ServedSandbox):
    """Runs actions as an unprivileged user, with a read-only system and only the workspace of the user's files.

    The workspace has the same path as outside. ``read_only`` paths are visible as well. ``soft_timeout`` is in seconds.
    Without ``egress`` there is no network at all; with it, only the hosts it allows. ``snapshots`` takes the session's
    snapshots.
    """

    name = "bubblewrap"

    def __init__(
        self,
        paths: SandboxPaths,
        save_blob: SaveBlob,
        read_only: Sequence[Path] = (),
        limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
        soft_timeout: float = 120.0,
        snapshots: Snapshots | None = None,
        egress: Egress | None = None,
    ) -> None:
        super().__init__(paths.workspace, save_blob, limits, soft_timeout, snapshots, egress)
        self._paths = paths
        self._read_only = read_only
        self._groups: ControlGroups | None = None
        self._scoped = False
        self._info: int | None = None
        self._lifeline: int | None = None
        self._root_pid: int | None = None

    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        check_mounts(self._read_only)
        check_no_daemon([self._paths.workspace])
        filters = seccomp.program(os.uname().machine)
        self._paths.check()
        uid, gid = sandbox_ids(self._paths.session_dir)
        if self._paths.base is None:
            await self._enter_folder(self._paths.workspace, self._paths.session_dir)
        self._paths.make(uid, gid, "home", "tmp")
        view = self._view(endpoint)
        self._groups = ControlGroups(endpoint.groups, self._limits)
        scope_command, environment = await asyncio.to_thread(scope, self._limits)
        self._scoped = bool(scope_command)
        self._info, info_fd = os.pipe()
        # Bubblewrap's child dies with it only after some time; this pipe also ends the process it becomes.
        lifeline_fd, self._lifeline = os.pipe()
        listening = endpoint.socket.fileno()
        seccomp_fd = in_memory(filters)
        state = in_memory(self._paths.shell_state())
        options = [*_NAMESPACES, *view.arguments, "--seccomp", str(seccomp_fd), "--info-fd", str(info_fd)]
        arguments = in_memory(b"".join(option.encode() + b"\0" for option in options))
        plan = {
            "parent": os.getpid(),
            "uid": uid,
            "gid": gid,
            "cgroups": self._groups.joins,
            "rlimits": self._rlimits(counted=self._scoped or self._groups.counts_processes),
            "nice": 0 if self._scoped or self._groups.shares_cpu else _NICE,
            "command": [*_bubblewrap(), "--args", str(arguments), "--", *self._server(listening, state, lifeline_fd)],
            **view.plan(),
        }
        plan_file = in_memory(marshal.dumps(plan))
        try:
            return await asyncio.create_subprocess_exec(
                *scope_command,
                *(sys.executable, "-I", "-S", "-B", launcher.__file__, str(plan_file)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(listening, seccomp_fd, info_fd, arguments, plan_file, state, lifeline_fd),
                # The plan holds everything it needs: an environment could be read in /proc.
                env=environment,
                start_new_session=True,
            )
        finally:
            for descriptor in (seccomp_fd, info_fd, arguments, plan_file, state, lifeline_fd):
                os.close(descriptor)

    def _start_monitor(self, process: asyncio.subprocess.Process, client: Client) -> LimitMonitor:
        root_pid = self._find_root_pid(process)
        if root_pid is None:
            raise SandboxError("the bubblewrap sandbox ended as it started; try again.")
        assert self._groups is not None
        # Without a scope of its own, it is in the group of this process, which reports other limits than the sandbox's.
        scope_group = unified_group(root_pid) if self._scoped else None
        counters = Counters(self._groups.folders.values() if scope_group is None else [scope_group])
        session_dir = self._paths.session_dir
        folders = [session_dir / name for name in ("overlay", "home", "tmp")]
        disk = Disk(folders, session_dir, self._limits.disk)
        return LimitMonitor(self._limits, root_pid, counters, disk, client.interrupt)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended, and asyncio is about to report it
                if root_pid := self._find_root_pid(process):
                    # It ends only after all other processes of the sandbox, and bubblewrap after it.
                    os.kill(root_pid, signal.SIGKILL)
                else:
                    # Bubblewrap may already have a child that does not yet die with it, and keeps the pipe open.
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def close(self) -> None:
        """End all processes and mounts of the sandbox; the workspace's files stay. Closing twice is allowed."""
        await super().close()
        if self._info is not None:
            os.close(self._info)
            self._info = self._root_pid = None
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _find_root_pid(self, process: asyncio.subprocess.Process) -> int | None:
        assert self._info is not None
        try:
            if self._root_pid is None and select.select([self._info], [], [], 0)[0]:
                self._root_pid = int(json.loads(os.read(self._info, 4096))["child-pid"])
            if self._root_pid is None or int(stat_fields(self._root_pid)[1]) != process.pid:
                return None
        except (ValueError, FileNotFoundError, ProcessLookupError):
            return None
        return self._root_pid

    def _view(self, endpoint: Endpoint) -> MountPlan:
        workspace = self._paths.workspace
        tools = find_toolchains(workspace, os.environ)
        roots = [root for root in (*tools.roots, *self._read_only) if not root.is_relative_to(workspace)]
        view = MountPlan()
        view.add_system()
        view.add_private(self._paths, self._limits.memory // 4)
        view.add_bundle(bundle.bundle_root(), bundle.inside_code(), bundle.browser_root())
        check_no_daemon(roots)
        view.add_read_only(roots)
        if self._paths.base is not None:
            view.add_copy(self._paths, self._paths.base)
        elif self._in_place is not None:
            view.add_in_place(workspace, self._in_place.protected, self._paths.session_dir)
        if self._proxy is not None:
            view.add_egress(endpoint.proxy, find_certificates(os.environ))
        view.add("--remount-ro", "/", "--chdir", f"{bundle.PREFIX}/app")
        view.add_environment(tools)
        return view

    def _rlimits(self, *, counted: bool) -> dict[int, int]:
        """Return each process's limits; the one on their number covers the sandbox, as its user namespace is new."""
        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: self._limits.file_size}
        return limits if counted else {**limits, resource.RLIMIT_NPROC: self._limits.processes}

    def _server(self, listening: int, state: int, lifeline_fd: int) -> list[str]:
        return [
            *(*bundle.INSIDE_PYTHON, "-m", "inside", "--fd", str(listening)),
            *("--workspace", self.workspace, "--soft-timeout", str(self._soft_timeout)),
            *(server_arguments() if self._proxy is not None else ()),
            *("--shell-state", str(state), "--until", str(lifeline_fd)),
        ]


def _bubblewrap() -> list[str]:
    """Return bubblewrap's command; its program is named by its staged path, which the sandbox's uid can reach."""
    root = str(bundle.bundle_root())
    return [part.replace(root, f"{launcher.STAGE}/bundle") for part in bundle.host_command("bwrap")]
