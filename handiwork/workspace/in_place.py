"""Protection of git repositories while an agent works in the user's own directory.

The directory's own repository gets a layer of the session above it. Nested repositories that exist when the agent
starts are read-only. Those that appear later are the agent's and are made harmless after every action. A record beside
the sessions lists the repositories that existed before, and survives if the process is killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from handiwork.errors import SandboxError
from handiwork.paths import lock, locked
from handiwork.workspace.git.nested import find_git_paths, make_harmless
from handiwork.workspace.git.repository import is_empty_directory, repository_around

Access = Literal["writable", "read-only", "layered"]
"""How a path of the real directory is mounted; "layered" is below a layer of the session."""


class InPlaceFolder:
    """A user's directory in which one or more agents work.

    Raises SandboxError if the directory cannot be protected, OSError.
    """

    def __init__(self, workspace: Path, session_dir: Path) -> None:
        self._workspace = workspace
        # The record is created first and removed last, so recovery after a kill always finds it.
        self._record = _Record(workspace, session_dir.parent.parent)
        try:
            self._git = GitMountPoint(workspace)
        except BaseException:
            self._record.remove()
            self._record.close()
            raise
        self.protected: list[str] = self._record.protected

    def make_harmless(self) -> None:
        """Disable the programs of repositories that have appeared since the start. Raises SandboxError."""
        _make_harmless(self._workspace, self.protected)

    def close(self) -> None:
        """Make new repositories harmless and release the directory; every sandbox process must have ended."""
        try:
            self.make_harmless()
            self._git.close()
            self._record.remove()
        finally:
            self._git.close()
            self._record.close()


def recover(data: Path, workspace: Path | None = None) -> None:
    """Make repositories left by killed agents harmless, in one directory or in all. Raises SandboxError, OSError."""
    records = [_Record.path(workspace, data)] if workspace is not None else list((data / "in-place").glob("*"))
    for record in records:
        _recover(record)


def _recover(path: Path) -> None:
    # If the file is locked, an agent is working in the directory.
    with suppress(FileNotFoundError, BlockingIOError), locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as record:
        if content := _read_content(record):
            workspace, protected = _parse_record(content)
            if workspace.is_dir():
                _make_harmless(workspace, protected)
                if is_empty_directory(workspace / ".git"):
                    GitMountPoint(workspace).close()
        path.unlink(missing_ok=True)


def _read_content(record: int) -> bytes:
    return os.pread(record, os.fstat(record).st_size, 0)


def _parse_record(data: bytes) -> tuple[Path, list[str]]:
    """Return the directory of a record and the repositories that existed in it."""
    record: dict[str, Any] = json.loads(data)
    return Path(record["workspace"]), record["known"]


def _make_harmless(workspace: Path, protected: list[str]) -> None:
    try:
        make_harmless(workspace, protected)
    except OSError as error:
        raise SandboxError(
            f"a repository that the agent made in {workspace} cannot be made harmless ({error}): remove it, and run "
            "no git in it before."
        ) from error


class _Record:
    """The file listing the protected repositories, locked by every session that works in the directory."""

    def __init__(self, workspace: Path, data: Path) -> None:
        path = self.path(workspace, data)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        while True:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if self._begin(workspace):
                    break
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)
        self._path = path

    @staticmethod
    def path(workspace: Path, data: Path) -> Path:
        """Return the path of the record."""
        name = hashlib.sha256(os.fsencode(workspace.resolve())).hexdigest()[:32]
        return data / "in-place" / name

    def remove(self) -> None:
        """Remove the record unless other sessions work in the directory."""
        with suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._path.unlink()

    def close(self) -> None:
        """Release the lock."""
        os.close(self._file)

    def _begin(self, workspace: Path) -> bool:
        """Join the record of running sessions, or start a new one; return False if another process just removed it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            fcntl.flock(self._file, fcntl.LOCK_SH)
            alone = False
        if not os.fstat(self._file).st_nlink:
            return False
        content = _read_content(self._file)
        if alone:
            if content:  # its writer was killed
                _make_harmless(workspace, _parse_record(content)[1])
            self.protected = _find_protected(workspace)
            os.ftruncate(self._file, 0)
            record = {"workspace": str(workspace.resolve()), "known": self.protected}
            os.pwrite(self._file, json.dumps(record).encode(), 0)
            fcntl.flock(self._file, fcntl.LOCK_SH)
            return True
        self.protected = _parse_record(content)[1] if content else []
        return bool(content)


def _find_protected(workspace: Path) -> list[str]:
    """Return the paths that must not change: repositories, and submodules, which git enters unasked."""
    submodules = _submodules(workspace)
    return sorted({*submodules, *find_git_paths(workspace, submodules)})


class GitMountPoint:
    """The ``.git`` of a workspace over which sandboxes mount their own layers.

    Creates an empty directory, which git ignores, if it is missing. Raises SandboxError if ``.git`` is a symbolic
    link, OSError.
    """

    def __init__(self, workspace: Path) -> None:
        self._path = workspace / ".git"
        self._lock: int | None = None
        if self._path.is_symlink():
            raise SandboxError(f"{self._path} is a symbolic link, so work in place is not safe: work on a copy.")
        while self._lock is None:
            if not self._path.exists():
                if not os.access(workspace, os.W_OK):
                    return
                owner = workspace.stat()
                self._path.mkdir(exist_ok=True)
                os.chown(self._path, owner.st_uid, owner.st_gid)
            if not self._path.is_dir():
                return
            self._lock = self._shared_lock()

    def close(self) -> None:
        """Remove ``.git`` if it is empty and unused: removal would take away the mounts of other sessions."""
        if self._lock is None:
            return
        with suppress(OSError):  # it is not empty, or another session uses it
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._path.rmdir()
        os.close(self._lock)
        self._lock = None

    def _shared_lock(self) -> int | None:
        """Lock ``.git`` against removal; return None if it has just been removed."""
        try:
            descriptor = lock(self._path, fcntl.LOCK_SH, os.O_DIRECTORY)
        except FileNotFoundError:
            return None
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)
        return None


def _submodules(workspace: Path) -> list[str]:
    """Return the submodules below the workspace, relative to it. Raises SandboxError if one cannot be protected."""
    repository = repository_around(workspace)
    if repository is None:
        return []
    all_paths = (repository.worktree / os.fsdecode(path) for path in repository.index.submodules)
    paths = [path.relative_to(workspace) for path in all_paths if path.is_relative_to(workspace)]
    for path in paths:
        for part in (path, *path.parents):
            if not _is_directory(workspace / part):
                raise SandboxError(
                    f"{workspace / path} is a submodule, but {part} is no directory: run `git submodule update "
                    "--init` first, or work on a copy."
                )
    return [str(path) for path in paths if path.parts]


def mounts(workspace: Path, protected: Sequence[str]) -> Iterator[tuple[str, Access]]:
    """Yield the mounts of the real directory, in order: paths relative to it, "." first.

    The ``protected`` paths are read-only. Mounting their parents too keeps these from being swapped: a mount point
    cannot be renamed. Changes in a directory ``.git`` go to a layer of the session; a file of that name is read-only.
    """
    read_only = {path for path in protected if not any(str(parent) in protected for parent in Path(path).parents)}
    parents = {str(parent) for path in read_only for parent in Path(path).parents if parent.name}
    for path in (".", *sorted(parents)):
        yield path, "writable"
    for path in sorted(read_only):
        yield path, "read-only"
    if (workspace / ".git").exists():
        yield ".git", "layered" if (workspace / ".git").is_dir() else "read-only"


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
