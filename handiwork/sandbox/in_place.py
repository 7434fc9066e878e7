"""What must not be the agent's when it works in the user's own directory: where the user's git would look."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from handiwork.sandbox.base import SandboxError
from handiwork.sandbox.git import run_git
from handiwork.sandbox.safe_open import WorkspaceError

_SUBMODULE = b"160000 "


class GitPlace:
    """The ``.git`` of a workspace while sandboxes have a layer of their own mounted over it.

    It is made, empty, where there is none: git takes an empty one for nothing. Raises SandboxError where it is a
    symbolic link, OSError.
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
        """Remove it if it is empty; not while others use it, for their mounts on it would go with it."""
        if self._lock is None:
            return
        with suppress(OSError):  # there is something in it, or somebody uses it
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._path.rmdir()
        os.close(self._lock)
        self._lock = None

    def _shared_lock(self) -> int | None:
        """Lock it against removal, None if it was removed just before."""
        try:
            lock = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        fcntl.flock(lock, fcntl.LOCK_SH)
        if os.fstat(lock).st_nlink:
            return lock
        os.close(lock)
        return None


def submodules(workspace: Path) -> list[Path]:
    """Return the directories, relative to the workspace, that the user's git takes for submodules and looks into.

    Raises SandboxError where one cannot be protected.
    """
    try:
        listed = run_git(workspace, "ls-files", "--stage", "-z").stdout
    except WorkspaceError as error:
        raise SandboxError(f"work in place needs git, to see what to protect: {error}") from error
    entries = (entry for entry in listed.split(b"\0") if entry.startswith(_SUBMODULE))
    found = [Path(os.fsdecode(entry.partition(b"\t")[2])) for entry in entries]
    for path in found:
        for part in (path, *path.parents):
            if not _is_directory(workspace / part):
                raise SandboxError(
                    f"{workspace / path} is a submodule, but {part} is no directory: run `git submodule update "
                    "--init` first, or work on a copy."
                )
    return found


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
