"""A sandbox's files on a Docker daemon that does not see those of this machine.

They are sent into a volume when the sandbox starts, and changes there are copied back into the session's own layers
after every action; so the layers hold the same files as if the daemon had mounted them. The volume is removed when all
changes are back. If this process is killed before, the session's next start copies the rest.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from handiwork.errors import SandboxError
from handiwork.process import Process
from handiwork.sandbox import bundle
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.docker.file_agent import FileAgentClient
from handiwork.sandbox.docker.mounts import home_mount, overlay, points_dir, workspace_mounts
from handiwork.sandbox.docker.remote_bundle import bundle_volume
from handiwork.sandbox.inside.files.tree_stream import scan, send, send_directory
from handiwork.sandbox.limits.limits import RESERVE
from handiwork.workspace.layers import SandboxPaths, file_name, layers_of, mount_layer
from handiwork.workspace.snapshots.object_store import remove_tree

FOLDER, VOLUME = "handiwork.folder", "handiwork.volume"
"""Labels: of a volume, the session's folder; of a container, the volume it uses."""

_VOLUME = '{{.Name}}\t{{.Label "' + docker_cli.OWNER + '"}}\t{{.Label "' + FOLDER + '"}}'


@dataclass(frozen=True)
class VolumeRecord:
    """The volume of a session's files, recorded while it may exist; ``whole`` is true once all files are sent."""

    daemon: str
    host: str
    volume: str
    whole: bool = False

    @staticmethod
    def path(session_dir: Path) -> Path:
        """Return the record's path."""
        return session_dir / "elsewhere.json"

    @classmethod
    def load(cls, session_dir: Path) -> VolumeRecord | None:
        """Return a session's record, None if it has none."""
        try:
            return cls(**json.loads(cls.path(session_dir).read_bytes()))
        except FileNotFoundError:
            return None

    def save(self, session_dir: Path) -> None:
        """Write the record to the session's folder."""
        part = session_dir / "elsewhere.part"
        with open(part, "w") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self.path(session_dir))


class RemoteFiles:
    """The files on the daemon of one sandbox that runs in ``image``; ``limit`` is in bytes.

    ``owner`` is the uid and gid of files copied back, if this process may set them.
    """

    def __init__(
        self, paths: SandboxPaths, image: str, owner: tuple[int, int], limit: int, on_status: docker_cli.OnStatus
    ) -> None:
        self._paths, self._image, self._limit, self._on_status = paths, image, limit, on_status
        self._owner = owner if os.geteuid() == 0 else None
        self._trees = [str(directory.upper.relative_to(paths.session_dir)) for directory in paths.written().values()]
        self._record: VolumeRecord | None = None
        self._agent: FileAgentClient | None = None
        self._bundle, self._mountpoint = "", Path()
        self._turn = asyncio.Lock()

    async def open(self, owner: tuple[int, int]) -> None:
        """Copy back the changes of an earlier start, and send the files, which belong to ``owner`` there.

        Raises SandboxError.
        """
        daemon = await _daemon_id()
        self._bundle = await bundle_volume(self._image, self._on_status)
        await self._rescue(daemon)
        await _sweep()
        self._on_status("sending the files to the Docker daemon")
        host = os.environ.get("DOCKER_HOST") or "another context"
        record = VolumeRecord(daemon, host, f"handiwork-session-{secrets.token_hex(8)}")
        record.save(self._paths.session_dir)
        self._record = record
        labels = (f"{docker_cli.OWNER}={docker_cli.owner()}", f"{FOLDER}={self._paths.session_dir}")
        await docker_cli.checked("volume", "create", *(f"--label={label}" for label in labels), record.volume)
        mountpoint = await docker_cli.checked("volume", "inspect", "--format", "{{.Mountpoint}}", record.volume)
        self._mountpoint = Path(mountpoint)
        self._agent = await self._start_agent(record.volume)
        await self._agent.put(self._send, owner, self._trees)
        self._record = VolumeRecord(daemon, host, record.volume, whole=True)
        self._record.save(self._paths.session_dir)

    def labels(self) -> list[str]:
        """Return the option that labels a container as a user of the volume."""
        assert self._record is not None
        return [f"--label={VOLUME}={self._record.volume}"]

    def mounts(self) -> list[str]:
        """Return the container's mounts, as options of `docker run`. Raises SandboxError."""
        paths, mountpoint = self._paths, self._mountpoint
        layer = mountpoint / "layer" if paths.layer else None
        remote_paths = SandboxPaths(mountpoint, paths.workspace, mountpoint / "base", (), layer)
        options = [
            f"type=volume,src={self._bundle},dst={bundle.PREFIX},readonly=true,volume-nocopy=true",
            home_mount(remote_paths),
            *workspace_mounts(remote_paths),
        ]
        for name in paths.mounts:
            lowers = [layer / mount_layer(name)] if layer else []
            lowers.append(mountpoint / _mount_path(name))
            options.append(overlay(paths.workspace / name, lowers, layers_of(mountpoint, name)))
        return options

    async def bring_back(self) -> int:
        """Copy back the changes since the last call and return the number of paths. Raises SandboxError."""
        assert self._agent is not None
        async with self._turn:
            return await self._agent.get(self._paths.session_dir, self._trees, self._owner, self._limit)

    async def bring_back_still(self, container: str) -> None:
        """Copy back all changes up to one moment; pause the container if it has just written files."""
        if not await self.bring_back():
            return
        await docker_cli.checked("pause", container)
        try:
            await self.bring_back()
        finally:
            await docker_cli.checked("unpause", container)

    async def close(self) -> None:
        """Copy back the last changes after all writers ended; remove the volume, or keep it if the copy fails."""
        try:
            if self._agent is not None and self._record is not None and self._record.whole:
                await self.bring_back()
        except SandboxError as error:
            self._on_status(f"the latest changes stay on the Docker daemon until the session resumes: {error}")
            return
        finally:
            if self._agent is not None:
                await self._agent.close()
                self._agent = None
        if self._record is not None:
            await self._remove_volume(self._record)
            self._record = None

    async def _remove_volume(self, record: VolumeRecord) -> None:
        """Remove the volume, which is no longer needed, and then its record."""
        code, errors = await docker_cli.run("volume", "rm", "--force", record.volume)
        if code:
            self._on_status(f"the volume {record.volume} stays until the next start: {errors}")
            return
        VolumeRecord.path(self._paths.session_dir).unlink(missing_ok=True)

    async def _start_agent(self, volume: str) -> FileAgentClient:
        labels = [f"--label={docker_cli.OWNER}={docker_cli.owner()}", f"--label={VOLUME}={volume}"]
        agent = FileAgentClient(self._image, self._bundle, volume, labels)
        await agent.start()
        return agent

    async def _rescue(self, daemon: str) -> None:
        """Copy back all changes that an earlier start of the session left in its volume, if any."""
        record = VolumeRecord.load(self._paths.session_dir)
        if record is None:
            return
        if record.daemon != daemon:
            raise SandboxError(_waiting_message(record))
        if record.volume not in [volume.name for volume in await _volumes()]:
            self._on_status(f"the volume {record.volume} was removed: the latest changes may be lost")
        else:
            await self._end_users(record.volume)
            if record.whole:
                self._on_status("copying back the changes of this session's interrupted run")
                await self._copy_back_all(record.volume)
        await self._remove_volume(record)
        if VolumeRecord.load(self._paths.session_dir) is not None:
            raise SandboxError(f"the volume {record.volume} cannot be removed: stop its containers, and try again.")

    async def _end_users(self, volume: str) -> None:
        filters = ("--filter", f"label={VOLUME}={volume}")
        if containers := await docker_cli.checked("ps", "--all", "--quiet", "--no-trunc", *filters):
            await docker_cli.remove(*containers.split())

    async def _copy_back_all(self, volume: str) -> None:
        """Replace the local trees with those of the volume."""
        session_dir = self._paths.session_dir
        fresh = session_dir / "elsewhere-fresh"
        if fresh.exists():
            remove_tree(fresh)
        for tree in self._trees:
            (fresh / tree).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Also beyond the limit, if there is room: only in a running sandbox can the agent remove files.
        limit = max(self._limit, shutil.disk_usage(session_dir).free - RESERVE)
        agent = await self._start_agent(volume)
        try:
            await agent.get(fresh, self._trees, self._owner, limit)
        finally:
            await agent.close()
        for tree in self._trees:
            if (session_dir / tree).exists():
                remove_tree(session_dir / tree)
            (fresh / tree).rename(session_dir / tree)
        shutil.rmtree(fresh)

    def _send(self, stream: BinaryIO) -> None:
        """Write the files of the container's view, each at its path in ``mounts``."""
        paths, session_dir = self._paths, self._paths.session_dir
        assert paths.base is not None
        for path in self._directories():
            send_directory(stream, path, 0o700)
        trees = [*self._trees, str(points_dir(session_dir).relative_to(session_dir))]
        for tree in trees:
            _send_tree(stream, session_dir / tree, tree)
        _send_tree(stream, paths.base, "base")
        if paths.layer is not None:
            _send_tree(stream, paths.layer, "layer")
        for name in paths.mounts:
            if paths.has(name):
                _send_tree(stream, paths.workspace / name, _mount_path(name))
            else:
                send_directory(stream, _mount_path(name), 0o755)

    def _directories(self) -> list[str]:
        """Return the directories that hold the trees, layers and mounts, parents first."""
        session_dir = self._paths.session_dir
        layers = [folder.relative_to(session_dir) for folder in self._paths.lowers()]
        parents = {parent for folder in layers for parent in (folder / "work").parents if parent.name}
        return sorted([*map(str, parents), *(str(folder / "work") for folder in layers), *(["under"])])


def check_sendable(paths: SandboxPaths, read_only: Sequence[Path]) -> None:
    """Raise SandboxError for features that a remote daemon cannot have."""
    reason = "the Docker daemon does not see the files of this machine"
    if paths.base is None:
        raise SandboxError(f"{reason}, so the agent cannot work in place: work on a copy, or use a daemon here.")
    if read_only:
        raise SandboxError(f"{reason}, so {read_only[0]} cannot be mounted: use a daemon that runs on it.")


async def changes_wait_here(session_dir: Path) -> bool:
    """Return whether this daemon has the session's latest changes. Raises SandboxError if another one has them."""
    record = VolumeRecord.load(session_dir)
    if record is not None and record.daemon != await _daemon_id():
        raise SandboxError(_waiting_message(record))
    return record is not None


async def _daemon_id() -> str:
    return await docker_cli.checked("info", "--format", "{{.ID}}")


def check_nothing_waits(session_dir: Path) -> None:
    """Raise SandboxError if the session's latest changes are still on a remote daemon."""
    if record := VolumeRecord.load(session_dir):
        raise SandboxError(_waiting_message(record))


def _waiting_message(record: VolumeRecord) -> str:
    """Return the message about session files that are still on another daemon."""
    return (
        f"the session's latest changes are in the volume {record.volume} of the Docker daemon at {record.host}: use "
        "that daemon again, or remove elsewhere.json from the session's folder to resume without them."
    )


@dataclass(frozen=True)
class _Volume:
    name: str
    owner: str
    folder: str


async def _volumes() -> list[_Volume]:
    output = await docker_cli.checked("volume", "ls", "--filter", f"label={FOLDER}", "--format", _VOLUME)
    return [_Volume(*line.split("\t", 2)) for line in output.splitlines() if line.count("\t") >= 2]


async def _sweep() -> None:
    """Remove the volumes that dead processes of this machine left of deleted sessions."""
    for volume in await _volumes():
        owner = volume.owner.split()
        dead = len(owner) == 3 and Process(owner[0], int(owner[1]), owner[2]).alive() is False
        if dead and not Path(volume.folder).exists():
            await docker_cli.run("volume", "rm", "--force", volume.name)


def _mount_path(mount: str) -> str:
    """Return the path in the volume of a directory that the copy leaves out."""
    return f"under/{file_name(mount)}"


def _send_tree(stream: BinaryIO, root: Path, at: str) -> None:
    send(stream, str(root), scan(str(root), ""), at=at)
