"""The sandbox of any Docker image: unchanged, with the bundle mounted beside its own files."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from handiwork.errors import SandboxError
from handiwork.events.base import Action, Observation
from handiwork.sandbox import bundle
from handiwork.sandbox.base import NO_SECRETS, OnOutput
from handiwork.sandbox.bubblewrap import seccomp
from handiwork.sandbox.bubblewrap.mounts import agent_environment
from handiwork.sandbox.client import Client, SaveBlob
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.docker.mounts import (
    GIVER,
    egress_mounts,
    home_mount,
    make_points,
    platform_mounts,
    read_only_mounts,
    volume_options,
    workspace_mounts,
)
from handiwork.sandbox.docker.remote_files import RemoteFiles, changes_wait_here, check_sendable
from handiwork.sandbox.docker.tunnel import Relay
from handiwork.sandbox.egress.inside import find_certificates, server_arguments, variables
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.endpoint import Endpoint, in_memory
from handiwork.sandbox.limits.cgroups import Counters, groups_of
from handiwork.sandbox.limits.disk import Disk
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.sandbox.limits.monitor import LimitMonitor
from handiwork.sandbox.questions import AskModel
from handiwork.sandbox.served import ServedSandbox
from handiwork.sandbox.streams.byte_stream import ByteStream, Size
from handiwork.sandbox.toolchains import check_mounts, check_no_daemon
from handiwork.sandbox.users import container_ids
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.snapshots.store import Snapshot, Snapshots

_START_TIMEOUT = 60.0
_END_TIMEOUT = 20.0
_REMOVALS = 20
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROXIES = [f"{kind}_proxy" for kind in ("http", "https", "ftp", "all", "no")]
_PEER = struct.Struct("3i")  # pid, uid and gid of the process at the other end of a unix socket

SERVER = "/run/handiwork-server/socket"
"""The path of the server's socket inside, on a remote daemon."""

_ROOT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""With a writable root: the capabilities to own all files, to end all processes, and to become another user."""

_ROOT_IDENTITY = {"HOME": "/root", "USER": "root", "LOGNAME": "root"}


class NotSeenError(SandboxError):
    """The daemon does not see the files of this machine."""


class DockerSandbox(ServedSandbox):
    """Runs actions in a container of ``image``, whose own files are read-only.

    The other parameters are those of BubblewrapSandbox. ``on_status`` receives a description of each slow step. If the
    daemon does not see this machine's files, they are copied there and back, see ``docker.remote_files``; then only
    Docker's own limits of ``limits`` hold, and ``disk`` for the files copied back.

    With ``writable_root`` the actions run as root, with ``_ROOT_CAPABILITIES``, and may change the container's own
    files, which vanish when it is closed; ``disk`` counts them if the daemon says where they are. The files of the
    workspace then belong to root on this machine too, unless the daemon is rootless: only root may use any other.
    """

    name = "docker"

    def __init__(
        self,
        image: str,
        paths: SandboxPaths,
        save_blob: SaveBlob,
        read_only: Sequence[Path] = (),
        limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
        soft_timeout: float = 120.0,
        snapshots: Snapshots | None = None,
        egress: Egress | None = None,
        on_status: docker_cli.OnStatus = lambda _: None,
        *,
        writable_root: bool = False,
    ) -> None:
        super().__init__(paths.workspace, save_blob, limits, soft_timeout, snapshots, egress)
        self._image = image
        self._paths = paths
        self._read_only = read_only
        self._egress = egress
        self._certificates = find_certificates(os.environ)
        self._on_status = on_status
        self._writable_root = writable_root
        self._root_layer: list[Path] = []
        self._container = ""
        self._filter: list[str] = []
        self._lifeline: socket.socket | None = None
        self._root_process: tuple[int, int] | None = None
        self._remote_files: RemoteFiles | None = None
        self._relay: Relay | None = None

    async def _spawn(self, endpoint: Endpoint) -> Process:
        self._paths.check()
        check_mounts(self._read_only)
        check_no_daemon([self._paths.workspace])
        image, daemon, is_remote, _ = await asyncio.gather(
            docker_cli.image_of(self._image, self._on_status),
            docker_cli.daemon(),
            docker_cli.is_elsewhere(),
            docker_cli.sweep(),
        )
        self._record_image(image.id)
        self._filter = seccomp.server_arguments(daemon.machine)
        uid, gid = self._ids(daemon)
        if self._paths.base is None and not is_remote:
            await self._enter_folder(self._paths.workspace, self._paths.session_dir)
        owner = (os.getuid(), os.getgid()) if daemon.rootless else (uid, gid)
        self._paths.make(*owner, "home")
        make_points(self._paths, *owner)
        self._container = f"handiwork-{endpoint.id}"
        options = [*docker_cli.HARDENED, *self._root_options(), "--user", f"{uid}:{gid}"]
        options += [*self._labels(), *self._limit_options()]
        options += [f"--env={name}={value}" for name, value in self._environment(image).items()]
        options += [] if self._writable_root else volume_options(image.volumes, self._paths, self._read_only)
        egress_arguments = {} if self._proxy is None else variables(self._certificates is not None)
        if not is_remote and not await changes_wait_here(self._paths.session_dir):
            os.chown(endpoint.path, *owner)
            try:
                added = [f"--env={name}={value}" for name, value in egress_arguments.items()]
                return await self._run(endpoint, [*options, *added])
            except NotSeenError:
                pass  # the daemon's socket is on this machine, but the daemon is not
        return await self._run_remote(endpoint, options, owner, (uid, gid))

    async def _run(self, endpoint: Endpoint, options: Sequence[str]) -> Process:
        self._on_status(f"starting {self._image}")
        mounts = [f"--mount={mount}" for mount in self._mounts(endpoint)]
        egress_arguments = server_arguments() if self._proxy is not None else ()
        command = self._command([*options, *mounts], ["--from", GIVER, *egress_arguments])
        # If cancelling a start killed the program half-way, it could leave a container behind.
        starting = asyncio.ensure_future(docker_cli.start(*command, stdout=DEVNULL, stderr=PIPE))
        try:
            process = await asyncio.shield(starting)
            await self._hand_over(endpoint.socket, process)
            self._root_layer = await self._find_root_layer()
        except asyncio.CancelledError:
            await self._stop(await starting)
            raise
        return process

    async def _run_remote(
        self, endpoint: Endpoint, options: Sequence[str], owner: tuple[int, int], remote_ids: tuple[int, int]
    ) -> Process:
        check_sendable(self._paths, self._read_only)
        if hosts := self._egress.allowed() if self._egress else ():
            # The proxy is on this machine, and the daemon cannot reach it.
            self._on_status(f"the Docker daemon is on another machine: {', '.join(hosts)} cannot be reached from there")
        self._remote_files = RemoteFiles(self._paths, self._image, owner, self._limits.disk, self._on_status)
        await self._remote_files.open(remote_ids)
        self._on_status(f"starting {self._image}")
        uid, gid = remote_ids
        remote_options = [f"--mount={mount}" for mount in self._remote_files.mounts()]
        remote_options += ["--interactive", f"--tmpfs={os.path.dirname(SERVER)}:mode=0700,uid={uid},gid={gid}"]
        command = self._command(
            [*options, *self._remote_files.labels(), *remote_options], ["--unix", SERVER, "--lifeline"]
        )
        starting = asyncio.ensure_future(docker_cli.start(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE))
        try:
            process = await asyncio.shield(starting)
            assert process.stdin is not None
            assert process.stdout is not None
            state = self._paths.shell_state()
            process.stdin.write(b"%d\n" % len(state) + state)
            await self._wait_for_start(asyncio.create_task(process.stdout.readline()), process)
            self._relay = Relay(endpoint.socket.dup(), self._container, SERVER)
        except asyncio.CancelledError:
            await self._stop(await starting)
            raise
        return process

    def _ids(self, daemon: docker_cli.Daemon) -> tuple[int, int]:
        """Return the uid and gid of the container's processes. Raises SandboxError."""
        if self._writable_root and not daemon.rootless and os.geteuid() != 0:
            raise SandboxError(
                "a container whose system the agent may change needs a rootless Docker daemon (set DOCKER_HOST to its "
                "socket), or root as the user of Handiwork: its files would be root's, and you could not remove them."
            )
        if self._writable_root or daemon.rootless:
            return 0, 0
        return container_ids(self._paths.base or self._paths.workspace)

    def _root_options(self) -> list[str]:
        return [f"--cap-add={name}" for name in _ROOT_CAPABILITIES] if self._writable_root else ["--read-only"]

    async def _find_root_layer(self) -> list[Path]:
        """Return the folder of the container's own changed files, if it is writable and the daemon names a local one.

        Daemons whose images are in containerd's store name none.
        """
        if not self._writable_root:
            return []
        code, folder = await docker_cli.run(
            "container", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", self._container
        )
        return [Path(folder)] if code == 0 and folder.startswith("/") else []

    def _command(self, options: Sequence[str], listen: Sequence[str]) -> list[str]:
        python, *arguments = bundle.INSIDE_PYTHON
        return [
            *("run", "--rm", "--pull=never", "--name", self._container, *options, "--workdir", self.workspace),
            *(f"--entrypoint={python}", self._image, *arguments, "-m", "inside", *listen),
            *("--workspace", self.workspace, "--soft-timeout", str(self._soft_timeout), *self._filter),
        ]

    async def _hand_over(self, listening: socket.socket, process: Process) -> None:
        """Pass the server the socket to listen on. The connection stays open: the server ends when it is closed."""
        listening.setblocking(False)
        accept = asyncio.create_task(asyncio.get_running_loop().sock_accept(listening))
        await self._wait_for_start(accept, process)
        self._lifeline, _ = accept.result()
        pid, _, _ = _PEER.unpack(self._lifeline.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        self._root_process = pid, os.pidfd_open(pid)
        state = in_memory(self._paths.shell_state())
        try:
            socket.send_fds(self._lifeline, [b"s"], [listening.fileno(), state])
        finally:
            os.close(state)

    async def _wait_for_start(self, sign: asyncio.Task[Any], process: Process) -> None:
        """Wait for a sign that the server runs. Raises SandboxError, NotSeenError if it does not."""
        exit_task = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({sign, exit_task}, timeout=_START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
            if sign.done() and sign.result():
                return
        finally:
            sign.cancel()
            exit_task.cancel()
            await asyncio.gather(sign, exit_task, return_exceptions=True)
        if process.returncode is None and not sign.done():
            await self._stop(process)
            raise SandboxError(f"a container of {self._image} did not start in {_START_TIMEOUT:.0f} s; try again.")
        assert process.stderr is not None
        errors = (await process.stderr.read()).decode("utf-8", "replace")
        await process.wait()
        if docker_cli.NOT_SEEN in errors:
            raise NotSeenError(docker_cli.explained(errors))
        raise SandboxError(f"a container of {self._image} did not start. {docker_cli.explained(errors)}")

    def _find_root_pid(self, process: Process) -> int | None:
        return None if self._root_process is None else self._root_process[0]

    def _start_monitor(self, process: Process, client: Client) -> LimitMonitor:
        if self._root_process is None:
            return LimitMonitor(self._limits, 0, Counters(()), None, client.interrupt)  # Docker's own limits hold there
        session_dir = self._paths.session_dir
        folders = [*(session_dir / name for name in ("overlay", "home")), *self._root_layer]
        disk = Disk(folders, session_dir, self._limits.disk)
        return LimitMonitor(
            self._limits, self._root_process[0], Counters(groups_of(self._root_process[0])), disk, client.interrupt
        )

    async def _stop(self, process: Process) -> None:
        """End the container; ``process`` ends once it is removed."""
        if process.returncode is None and self._root_process is not None:
            # The container's other processes end with its first. Rootless, that may belong to another user.
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._root_process[1], signal.SIGKILL)
        for timeout in (_END_TIMEOUT if self._root_process else 0.0, *[1.0] * _REMOVALS):
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), timeout)
                return
            # The container may not be created yet, so one attempt is not enough.
            await docker_cli.remove(self._container)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def execute(
        self,
        action: Action,
        on_output: OnOutput | None = None,
        secrets: Mapping[str, str] = NO_SECRETS,
        ask: AskModel | None = None,
    ) -> Observation:
        """Run a runnable action. Raises SandboxError if the sandbox is lost; cancelling stops the action."""
        observation = await super().execute(action, on_output, secrets, ask)
        if self._remote_files is not None:
            await self._remote_files.bring_back()
        return observation

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file inside. Raises OSError, SandboxError."""
        await super().upload(path, data)
        if self._remote_files is not None:
            await self._remote_files.bring_back()

    @asynccontextmanager
    async def terminal(self, size: Size) -> AsyncGenerator[ByteStream]:
        """Open a terminal for the user, whose shell ends with the context. Raises StreamRefusedError, SandboxError."""
        try:
            async with super().terminal(size) as stream:
                yield stream
        finally:
            if self._remote_files is not None:
                await self._remote_files.bring_back()

    async def snapshot(self) -> Snapshot | None:
        """Save the files and the shell's state; processes are paused while files are copied."""
        if self._remote_files is not None and self._relay is not None:
            async with self._relay.still():
                await self._remote_files.bring_back_still(self._container)
        return await super().snapshot()

    async def close(self) -> None:
        """End and remove the container; the workspace's files stay. Closing twice is allowed."""
        await super().close()
        if self._relay is not None:
            await self._relay.close()
            self._relay = None
        if self._remote_files is not None:
            remote_files, self._remote_files = self._remote_files, None
            await remote_files.close()
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
        if self._root_process is not None:
            os.close(self._root_process[1])
            self._root_process = None
        for layers in self._paths.lowers():
            # The daemon created it, so a user other than root could not remove the session's folder otherwise.
            try:
                (layers / "work/work").rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                # After a deletion it has root's entries in it.
                if os.geteuid() != 0:
                    await docker_cli.remove_folder(layers / "work/work", self._image)
        with suppress(SandboxError):  # the next start removes them
            await docker_cli.remove_image_volumes()

    def _record_image(self, image_id: str) -> None:
        """Record the image's id, and report if the name means another image than before."""
        record = self._paths.session_dir / "image"
        previous = record.read_text() if record.exists() else ""
        if previous not in ("", image_id):
            old, new = (digest.removeprefix("sha256:")[:12] for digest in (previous, image_id))
            self._on_status(f"the image {self._image} is not the one that this session had: it was {old} and is {new}")
        record.write_text(image_id)

    def _labels(self) -> list[str]:
        labels = {docker_cli.OWNER: docker_cli.owner(), docker_cli.SESSION: self._paths.session_dir.name}
        return [f"--label={name}={value}" for name, value in labels.items()]

    def _limit_options(self) -> list[str]:
        limits = self._limits
        share = limits.memory // 4  # files in memory outlive the processes that wrote them
        return [
            *(f"--memory={limits.memory}b", f"--memory-swap={limits.memory}b", f"--pids-limit={limits.processes}"),
            *("--cpu-shares=512", *([f"--cpus={limits.cpus}"] if limits.cpus else [])),
            *(f"--ulimit=fsize={limits.file_size}", "--ulimit=core=0", f"--shm-size={share}b"),
            *(f"--tmpfs={path}:exec,mode=1777,size={share}" for path in ("/tmp", "/var/tmp")),
        ]

    def _environment(self, image: docker_cli.DockerImage) -> dict[str, str]:
        """Return the variables that are added to the image's own, or replace them."""
        return {
            # Docker passes the proxies of its user's settings to every container, including their passwords.
            **{name: "" for proxy in _PROXIES for name in (proxy, proxy.upper())},
            **({} if "LANG" in image.environment else {"LANG": "C.UTF-8"}),
            **agent_environment(
                f"{bundle.PREFIX}/bin/bash", f"{image.environment.get('PATH') or _DEFAULT_PATH}:{bundle.PREFIX}/bin"
            ),
            **(_ROOT_IDENTITY if self._writable_root else {}),
        }

    def _mounts(self, endpoint: Endpoint) -> list[str]:
        empty = self._paths.session_dir / "empty-file"
        empty.touch()
        return [
            *platform_mounts(endpoint.path),
            home_mount(self._paths),
            *(egress_mounts(endpoint.proxy, self._certificates) if self._proxy is not None else ()),
            *workspace_mounts(self._paths, self._in_place.protected if self._in_place else ()),
            *read_only_mounts(self._read_only, empty),
        ]
