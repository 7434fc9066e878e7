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
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from handiwork.sandbox import bundle, launcher, seccomp
from handiwork.sandbox.base import SandboxError
from handiwork.sandbox.cgroups import ControlGroups, Counters, scope, unified_group
from handiwork.sandbox.client import Client, SaveBlob
from handiwork.sandbox.disk import Disk
from handiwork.sandbox.guard import Guard
from handiwork.sandbox.identity import sandbox_ids
from handiwork.sandbox.in_place import GitPlace, submodules
from handiwork.sandbox.limits import ResourceLimits
from handiwork.sandbox.processes import paused
from handiwork.sandbox.runtime import Endpoint
from handiwork.sandbox.served import ServedSandbox
from handiwork.sandbox.snapshots import Place, Snapshot, Snapshots
from handiwork.sandbox.toolchains import check_mounts, find_toolchains
from handiwork.sandbox.view import (
    HOME_LAYER,
    UID,
    WORKSPACE_LAYER,
    View,
    git_layers,
    home_layers,
    layers_of,
    mount_layer,
)

_NAMESPACES = (
    "--unshare-user --disable-userns --unshare-pid --unshare-net --unshare-ipc --unshare-uts "
    f"--unshare-cgroup-try --uid {UID} --gid {UID} --hostname sandbox --as-pid-1 --new-session "
    "--die-with-parent --clearenv"
).split()

_NICE = 5
"""Where processor time cannot be shared out by groups, other programs come first by this."""


def upper_dir(session_dir: Path) -> Path:
    """Return where what the agent changed in its copy of the workspace is kept: an overlay's upper layer."""
    return session_dir / "overlay/upper"


def snapshot_places(
    session_dir: Path, base: Path, workspace: Path, mounts: Sequence[str], fork: bool
) -> dict[str, Place]:
    """Return what a sandbox on a copy writes to, as snapshots name it; ``fork`` says whether it is laid over one."""
    home = home_layers(session_dir) / "upper" if fork else session_dir / "home"
    places = {WORKSPACE_LAYER: Place(upper_dir(session_dir), base), HOME_LAYER: Place(home)}
    return places | {
        mount_layer(name): Place(layers_of(session_dir, name) / "upper", workspace / name) for name in mounts
    }


class BubblewrapSandbox(ServedSandbox):
    """Runs actions as an unprivileged user who sees the system read-only and of the user's files the workspace.

    ``workspace`` is the user's directory and where the sandbox has it. With ``base`` the agent works on a copy
    over that pristine one, changes being kept in ``session_dir``, and ``mounts`` are directories of the
    workspace, relative to it, that the copy leaves out and that are laid under it; without, on the real one,
    but what it does to ``.git`` is kept in ``session_dir``. ``read_only`` paths are shown as well.
    ``soft_timeout`` is in seconds. ``layer`` is that of the snapshot a fork begins with, ``snapshots`` takes those of
    this session.
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
        layer: Path | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        super().__init__(workspace, save_blob, limits, soft_timeout)
        self._layer = layer
        self._snapshots = snapshots
        self._session_dir = session_dir
        self._base = base
        self._mounts = mounts
        self._read_only = read_only
        self._groups: ControlGroups | None = None
        self._info: int | None = None
        self._first: int | None = None
        self._git_place: GitPlace | None = None

    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        check_mounts(self._read_only)
        filters = seccomp.program(os.uname().machine)
        self._check_places()
        uid, gid = sandbox_ids(self._session_dir)
        if self._base is None:
            self._git_place = GitPlace(Path(self.workspace))
        self._make_layers(uid, gid)
        view = self._view()
        self._groups = ControlGroups(endpoint.groups, self._limits)
        scoped, environment = scope(self._limits)
        self._info, tell = os.pipe()
        listening = endpoint.socket.fileno()
        seccomp_fd = _in_memory(filters)
        state = _in_memory(self._shell_state())
        options = [*_NAMESPACES, *view.arguments, "--seccomp", str(seccomp_fd), "--info-fd", str(tell)]
        arguments = _in_memory(b"".join(option.encode() + b"\0" for option in options))
        plan = {
            "parent": os.getpid(),
            "uid": uid,
            "gid": gid,
            "cgroups": self._groups.joins,
            "rlimits": self._rlimits(counted=bool(scoped or self._groups.counts_processes)),
            "nice": 0 if scoped or self._groups.shares_cpu else _NICE,
            "command": [*_bubblewrap(), "--args", str(arguments), "--", *self._server(listening, state)],
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
                pass_fds=(listening, seccomp_fd, tell, arguments, plan_file, state),
                # Everything it needs is in the plan: what is in an environment can be read in /proc.
                env=environment,
                start_new_session=True,
            )
        finally:
            for descriptor in (seccomp_fd, tell, arguments, plan_file, state):
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

    async def snapshot(self) -> Snapshot | None:
        """Keep the files and the shell's state; the processes stand still while files are copied."""
        if self._snapshots is None:
            return None
        first, state = None, b""
        if self._client is not None and self._process is not None:
            state = await self._client.shell_state()
            first = self._first_process(self._process.pid)
        still = partial(paused, first) if first else nullcontext
        # Nobody may go on while the processes stand still, so a cancelled snapshot is taken to its end too.
        taking = asyncio.ensure_future(asyncio.to_thread(self._snapshots.take, state, still))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.wait([taking])
            raise

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

    def _check_places(self) -> None:
        for path in filter(None, (Path(self.workspace), self._session_dir, self._base)):
            if not path.is_dir():
                raise SandboxError(f"{path} is missing, so the session cannot go on: bring it back or start a new one.")

    def _make_layers(self, uid: int, gid: int) -> None:
        """Make the directories that the sandbox writes to and give them to its uid."""
        private = [self._session_dir / "home", self._session_dir / "tmp"]
        modes: dict[Path, int] = {}
        overlay = self._session_dir / "overlay"
        private.append(overlay)
        for layers, lower in self._lowers().items():
            private += [layers.parent, layers, layers / "work"]
            # The mount as a whole has the mode of its upper layer.
            modes[layers / "upper"] = lower.stat().st_mode & 0o777
        modes = dict.fromkeys(private, 0o700) | modes
        for directory, mode in modes.items():
            if not directory.exists():
                directory.mkdir()
                directory.chmod(mode)
                os.chown(directory, uid, gid)

    def _lowers(self) -> dict[Path, Path]:
        """Where the layers of each overlay are, and what it is laid over."""
        workspace = Path(self.workspace)
        if self._base is None:
            git = workspace / ".git"
            return {git_layers(self._session_dir): git} if git.is_dir() else {}
        mounts = {layers_of(self._session_dir, name): workspace / name for name in self._mounts}
        if self._layer is None:
            return {upper_dir(self._session_dir).parent: self._base, **mounts}
        mounts = {layers: self._layer / mount_layer(name) for layers, name in zip(mounts, self._mounts, strict=True)}
        home = {home_layers(self._session_dir): self._layer / HOME_LAYER}
        return {upper_dir(self._session_dir).parent: self._layer / WORKSPACE_LAYER, **home, **mounts}

    def _view(self) -> View:
        workspace = Path(self.workspace)
        tools = find_toolchains(workspace, os.environ)
        roots = [root for root in (*tools.roots, *self._read_only) if not root.is_relative_to(workspace)]
        view = View()
        view.add_system()
        view.add_private(self._session_dir, self._limits.memory // 4, self._layer)
        view.add_bundle(bundle.bundle_root(), bundle.inside_code())
        view.add_read_only(roots)
        if self._base is None:
            view.add_in_place(workspace, submodules(workspace), self._session_dir)
        else:
            view.add_copy(workspace, self._base, self._mounts, self._session_dir, self._layer)
        view.add("--remount-ro", "/", "--chdir", f"{bundle.PREFIX}/app")
        view.add_environment(tools)
        return view

    def _rlimits(self, *, counted: bool) -> dict[int, int]:
        """The limits of each process; that on their number is for all of the sandbox, as its user namespace is new."""
        own = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: self._limits.file_size}
        return own if counted else {**own, resource.RLIMIT_NPROC: self._limits.processes}

    def _shell_state(self) -> bytes:
        kept = self._layer / "shell" if self._layer else None
        return kept.read_bytes() if kept is not None and kept.exists() else b""

    def _server(self, listening: int, state: int) -> list[str]:
        return [
            *(*bundle.INSIDE_PYTHON, "-m", "inside", "--fd", str(listening)),
            *("--workspace", self.workspace, "--soft-timeout", str(self._soft_timeout)),
            *("--shell-state", str(state)),
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
