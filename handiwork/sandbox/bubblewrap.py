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

from handiwork.sandbox import bundle, launcher, seccomp
from handiwork.sandbox.base import SandboxError
from handiwork.sandbox.cgroups import ControlGroups, Counters, scope, unified_group
from handiwork.sandbox.client import Client, SaveBlob
from handiwork.sandbox.disk import Disk
from handiwork.sandbox.egress.inside import find_certificates, server_arguments
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.guard import Guard
from handiwork.sandbox.identity import sandbox_ids
from handiwork.sandbox.in_place import GitPlace, submodules
from handiwork.sandbox.layers import Places
from handiwork.sandbox.limits import ResourceLimits
from handiwork.sandbox.runtime import Endpoint
from handiwork.sandbox.served import ServedSandbox
from handiwork.sandbox.toolchains import check_mounts, check_no_daemon, find_toolchains
from handiwork.sandbox.view import UID, View

_NAMESPACES = (
    "--unshare-user --disable-userns --unshare-pid --unshare-net --unshare-ipc --unshare-uts "
    f"--unshare-cgroup-try --uid {UID} --gid {UID} --hostname sandbox --as-pid-1 --new-session "
    "--die-with-parent --clearenv"
).split()

_NICE = 5
"""Where processor time cannot be shared out by groups, other programs come first by this."""


class BubblewrapSandbox(ServedSandbox):
    """Runs actions as an unprivileged user who sees the system read-only and of the user's files the workspace.

    ``workspace`` is the user's directory and where the sandbox has it. With ``base`` the agent works on a copy
    over that pristine one, changes being kept in ``session_dir``, and ``mounts`` are directories of the
    workspace, relative to it, that the copy leaves out and that are laid under it; without, on the real one,
    but what it does to ``.git`` is kept in ``session_dir``. ``read_only`` paths are shown as well.
    ``soft_timeout`` is in seconds. Without ``egress`` there is no network at all; with it, no more than it allows.
    """

    name = "bubblewrap"

    def __init__(
        self,
        session_dir: Path,
        workspace: Path,
        save_blob: SaveBlob,
        base: Path | None = None,
        mounts: Sequence[str] = (),
        read_only: Sequence[Path] = (),
        limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
        soft_timeout: float = 120.0,
        egress: Egress | None = None,
    ) -> None:
        super().__init__(workspace, save_blob, limits, soft_timeout, egress)
        self._session_dir = session_dir
        self._base = base
        self._mounts = mounts
        self._places = Places(session_dir, workspace, base, mounts)
        self._read_only = read_only
        self._groups: ControlGroups | None = None
        self._info: int | None = None
        self._first: int | None = None
        self._git_place: GitPlace | None = None

    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        check_mounts(self._read_only)
        check_no_daemon([self._places.workspace])
        filters = seccomp.program(os.uname().machine)
        self._places.check()
        uid, gid = sandbox_ids(self._session_dir)
        if self._base is None:
            self._git_place = GitPlace(Path(self.workspace))
        self._places.make(uid, gid, "home", "tmp")
        view = self._view(endpoint)
        self._groups = ControlGroups(endpoint.groups, self._limits)
        scoped, environment = scope(self._limits)
        self._info, tell = os.pipe()
        listening = endpoint.socket.fileno()
        seccomp_fd = _in_memory(filters)
        options = [*_NAMESPACES, *view.arguments, "--seccomp", str(seccomp_fd), "--info-fd", str(tell)]
        arguments = _in_memory(b"".join(option.encode() + b"\0" for option in options))
        plan = {
            "parent": os.getpid(),
            "uid": uid,
            "gid": gid,
            "cgroups": self._groups.joins,
            "rlimits": self._rlimits(counted=bool(scoped or self._groups.counts_processes)),
            "nice": 0 if scoped or self._groups.shares_cpu else _NICE,
            "command": [*_bubblewrap(), "--args", str(arguments), "--", *self._server(listening)],
            **view.plan(),
        }
        plan_file = _in_memory(marshal.dumps(plan))
        try:
            return await asyncio.create_subprocess_exec(
                *scoped,
                *(sys.executable, "-I", "-S", "-B", launcher.__file__, str(plan_file)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(listening, seccomp_fd, tell, arguments, plan_file),
                # Everything it needs is in the plan: what is in an environment can be read in /proc.
                env=environment,
                start_new_session=True,
            )
        finally:
            for descriptor in (seccomp_fd, tell, arguments, plan_file):
                os.close(descriptor)

    def _guarded(self, process: asyncio.subprocess.Process, client: Client) -> Guard:
        first = self._first_process(process.pid)
        if first is None:
            raise SandboxError("the bubblewrap sandbox ended as it started; try again.")
        assert self._groups is not None
        scoped = None if self._groups.made else unified_group(first)
        counters = Counters(self._groups.made.values() if scoped is None else [scoped])
        folders = [self._session_dir / name for name in ("overlay", "home", "tmp")]
        return Guard(
            self._limits, first, counters, Disk(folders, self._session_dir, self._limits.disk), client.interrupt
        )

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended, and asyncio is about to tell
                if first := self._first_process(process.pid):
                    # It ends only when all others of the sandbox are gone, and bubblewrap after it.
                    os.kill(first, signal.SIGKILL)
                else:
                    # Bubblewrap may have a child by now that does not yet die with it, and keeps the pipe open.
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def close(self) -> None:
        """End all its processes and mounts; the workspace's files stay. Closing twice is allowed."""
        await super().close()
        if self._info is not None:
            os.close(self._info)
            self._info = self._first = None
        if self._git_place is not None:
            self._git_place.close()
            self._git_place = None

    def _first_process(self, bubblewrap: int) -> int | None:
        """The pid, outside, of the sandbox's first process, if bubblewrap has come to start it."""
        assert self._info is not None
        try:
            if self._first is None and select.select([self._info], [], [], 0)[0]:
                self._first = int(json.loads(os.read(self._info, 4096))["child-pid"])
            parent = Path(f"/proc/{self._first}/stat").read_text().rpartition(")")[2].split()[1]
        except (ValueError, FileNotFoundError, ProcessLookupError):
            return None
        return self._first if int(parent) == bubblewrap else None

    def _view(self, endpoint: Endpoint) -> View:
        workspace = Path(self.workspace)
        tools = find_toolchains(workspace, os.environ)
        roots = [root for root in (*tools.roots, *self._read_only) if not root.is_relative_to(workspace)]
        view = View()
        view.add_system()
        view.add_private(self._session_dir, self._limits.memory // 4)
        view.add_bundle(bundle.bundle_root(), bundle.inside_code())
        view.add_read_only(roots)
        if self._base is None:
            view.add_in_place(workspace, submodules(workspace), self._session_dir)
        else:
            view.add_copy(workspace, self._base, self._mounts, self._session_dir)
        if self._proxy is not None:
            view.add_way_out(endpoint.proxy, find_certificates(os.environ))
        view.add("--remount-ro", "/", "--chdir", f"{bundle.PREFIX}/app")
        view.add_environment(tools)
        return view

    def _rlimits(self, *, counted: bool) -> dict[int, int]:
        """The limits of each process; that on their number is for all of the sandbox, as its user namespace is new."""
        own = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: self._limits.file_size}
        return own if counted else {**own, resource.RLIMIT_NPROC: self._limits.processes}

    def _server(self, listening: int) -> list[str]:
        return [
            *(*bundle.INSIDE_PYTHON, "-m", "inside", "--fd", str(listening)),
            *("--workspace", self.workspace, "--soft-timeout", str(self._soft_timeout)),
            *(server_arguments() if self._proxy is not None else ()),
        ]


def _bubblewrap() -> list[str]:
    """The command of bubblewrap; the bundle's is named by where it is staged, in reach of the sandbox's uid."""
    root = str(bundle.bundle_root())
    return [part.replace(root, f"{launcher.STAGE}/bundle") for part in bundle.host_command("bwrap")]


def _in_memory(data: bytes) -> int:
    """Return a descriptor from which the bytes can be read."""
    descriptor = os.memfd_create("handiwork")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
