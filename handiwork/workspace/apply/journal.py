"""The journal of an apply: a record of its moves, kept outside the target so that an interrupted apply can be undone.

Before the first move, every new file is on disk in a staging folder inside the target and the journal lists each
destination; each old file stays in the staging folder until the end. If the process dies, the next command on that
directory finds the journal and restores every file. The journal is in the data folder because a repository could
contain a forged one.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from handiwork.errors import WorkspaceError
from handiwork.paths import data_dir, lock
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.safe_open import (
    DIRECTORY,
    join,
    look_at,
    open_beneath,
    open_folder,
    open_resolved,
    parent_beneath,
)

STAGING = ".handiwork-"
"""Prefix of staging folder names."""

_SUFFIX = ".before-apply"
_libc = ctypes.CDLL(None, use_errno=True)

Identity = tuple[int, int, int]
"""Inode, size and modification time, which a staged file keeps when it is moved into place."""

Attributes = tuple[int, int, int]
"""Mode, uid and gid of a directory."""


@dataclass(frozen=True)
class Step:
    """One path: ``before`` says whether a file exists there, ``staged`` identifies its replacement; None deletes it."""

    path: str
    before: bool
    staged: Identity | None


@dataclass(frozen=True)
class Moves:
    """All moves of an apply: ``made`` are directories it creates, ``removed`` those it may remove."""

    steps: list[Step] = field(default_factory=list[Step])
    made: list[str] = field(default_factory=list[str])
    removed: dict[str, Attributes] = field(default_factory=dict[str, Attributes])


class BlockedError(WorkspaceError):
    """Another process is applying changes to the directory."""


class ApplyJournal:
    """Locks a directory for one apply and undoes an interrupted one; ``recovered`` then says so in a sentence.

    ``root`` and ``staging`` are descriptors of the directory and of its folder for new and old files. Raises
    BlockedError while another process applies changes there, and WorkspaceError if the interrupted apply cannot be
    undone.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.recovered = ""
        self.kept: Path | None = None
        """The folder for the undo of this apply, removed if the apply is cut off."""
        self.staging = -1
        self._name = ""
        self._moves: Moves | None = None
        self._file = _journal_file(target)
        self._file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._lock = self._acquire_lock()
        self.root = -1
        try:
            self.root = open_resolved(target)
            self._recover()
        except BaseException as error:
            self._close()
            if isinstance(error, OSError):
                raise WorkspaceError(f"{target} cannot be opened: {error.strerror}") from error
            raise

    def __enter__(self) -> ApplyJournal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if error is not None and self._moves is not None:
                self._undo(self._moves)
            self._reset()
        finally:
            self._close()

    def begin(self) -> int:
        """Create the staging folder and return its descriptor. Raises OSError."""
        self._name = STAGING + secrets.token_hex(8)
        self._append({"target": str(self.target), "staging": self._name, "kept": self.kept and str(self.kept)})
        os.mkdir(self._name, 0o700, dir_fd=self.root)
        self.staging = open_beneath(self.root, self._name, DIRECTORY)
        return self.staging

    def record(self, moves: Moves) -> None:
        """Sync the staged files and the moves to disk; from now on either all moves happen or all are undone."""
        sync_file_system(self.root)
        self._append(asdict(moves))
        self._moves = moves

    def done(self) -> None:
        """Record that every move is complete, so that none is undone."""
        sync_file_system(self.root)
        self._append({"done": True})
        self._moves = None

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory below the target. Raises OSError."""
        with parent_beneath(self.root, path) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    def make_directory(self, path: str, attributes: Attributes) -> None:
        """Make a directory below the target again; only root sets its owner. Raises OSError."""
        mode, uid, gid = attributes
        with parent_beneath(self.root, path) as (parent, name):
            os.mkdir(name, 0o700, dir_fd=parent)
            descriptor = open_beneath(parent, name, DIRECTORY)
            try:
                if os.geteuid() == 0:
                    os.fchown(descriptor, uid, gid)
                os.fchmod(descriptor, stat.S_IMODE(mode))
            finally:
                os.close(descriptor)

    def _acquire_lock(self) -> int:
        while True:
            try:
                descriptor = lock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            except BlockingIOError:
                raise BlockedError(f"another apply works in {self.target}; wait for its end") from None
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # the previous holder removed the file

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        while data:  # a disk that becomes full takes the beginning of it first
            data = data[os.write(self._lock, data) :]
        os.fsync(self._lock)

    def _recover(self) -> None:
        with open(os.dup(self._lock), "rb") as file:
            file.seek(0)
            lines = [json.loads(line) for line in file if line.endswith(b"\n")]
        if not lines:
            return
        self._name = lines[0]["staging"]
        with suppress(FileNotFoundError, NotADirectoryError):
            self.staging = open_beneath(self.root, self._name, DIRECTORY)
        if len(lines) == 2 and self.staging >= 0:
            record = lines[1]
            steps = [Step(step["path"], step["before"], _parse_identity(step["staged"])) for step in record["steps"]]
            renamed = self._undo(Moves(steps, record["made"], parse_attributes(record["removed"])))
            self.recovered = f"an apply in {self.target} was cut off; it is undone: the files are as before"
            if renamed:
                names = ", ".join(map(quoted, renamed))
                self.recovered += f". Files that were edited since stay as they are; the earlier ones are {names}"
        # Without the staging folder nothing could be undone: the kept files are then the only ones.
        if (len(lines) == 1 or (len(lines) == 2 and self.staging >= 0)) and (kept := lines[0].get("kept")):
            shutil.rmtree(kept, ignore_errors=True)
        self._reset()

    def _undo(self, moves: Moves) -> list[str]:
        """Restore every file; return the new paths of old files that edited ones displaced. Raises WorkspaceError."""
        renamed: list[str] = []
        steps = list(enumerate(moves.steps))
        try:
            for number, step in reversed(steps):
                if step.staged is not None:
                    renamed += self._restore(number, step)
            for path in sorted(moves.made, reverse=True):
                with suppress(OSError):  # it does not exist yet, or holds other files
                    self.remove_directory(path)
            for path, attributes in sorted(moves.removed.items()):
                if look_at(self.root, path) is None:
                    self.make_directory(path, attributes)
            for number, step in reversed(steps):
                if step.staged is None:
                    renamed += self._restore(number, step)
        except OSError as error:
            raise WorkspaceError(
                f"an apply in {self.target} was cut off and cannot be undone: {error.strerror}; the old files are"
                f" in {self.target / self._name}: make it writable and try again"
            ) from error
        self._moves = None
        return renamed

    def _restore(self, number: int, step: Step) -> list[str]:
        old, current = look_at(self.staging, f"old{number}"), look_at(self.root, step.path)
        ours = current is not None and step.staged == identity(current)
        folder, _, name = step.path.rpartition("/")
        try:
            parent = open_folder(self.root, folder)
        except (FileNotFoundError, NotADirectoryError):
            return []  # it does not exist yet, or its folder has been removed
        try:
            if old is None:
                if ours and not step.before:
                    os.unlink(name, dir_fd=parent)
            elif current is None or ours:
                os.rename(f"old{number}", name, src_dir_fd=self.staging, dst_dir_fd=parent)
            elif current.st_ino != old.st_ino:
                new_name = name + _SUFFIX
                while look_at(parent, new_name) is not None:
                    new_name += "~"
                os.rename(f"old{number}", new_name, src_dir_fd=self.staging, dst_dir_fd=parent)
                return [join(folder, new_name)]
            return []
        finally:
            os.close(parent)

    def _reset(self) -> None:
        """Remove the staging folder, then empty the journal."""
        if self._name:
            shutil.rmtree(self._name, ignore_errors=True, dir_fd=self.root)
            if self.staging >= 0:
                os.close(self.staging)
        self.staging, self._name = -1, ""
        os.ftruncate(self._lock, 0)

    def _close(self) -> None:
        if os.fstat(self._lock).st_size == 0:
            self._file.unlink(missing_ok=True)
        for descriptor in (self.root, self.staging, self._lock):
            if descriptor >= 0:
                os.close(descriptor)


def undo_cut_apply(target: Path) -> str:
    """Undo an interrupted apply in ``target`` and return a sentence about it; "" if none is left or one is running.

    Raises WorkspaceError if it cannot be undone.
    """
    target = target.resolve()
    if not _journal_file(target).exists() or not target.is_dir():
        return ""
    try:
        with ApplyJournal(target) as journal:
            return journal.recovered
    except BlockedError:
        return ""


def identity(status: os.stat_result) -> Identity:
    """Return the identity that a file keeps when it is moved."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def parse_attributes(saved: dict[str, list[int]]) -> dict[str, Attributes]:
    """Return the attributes of directories, as JSON has them."""
    return {path: (mode, uid, gid) for path, (mode, uid, gid) in saved.items()}


def _parse_identity(saved: list[int] | None) -> Identity | None:
    return None if saved is None else (saved[0], saved[1], saved[2])


def _journal_file(target: Path) -> Path:
    return data_dir() / "applying" / hashlib.sha256(os.fsencode(target)).hexdigest()


def sync_file_system(descriptor: int) -> None:
    """Sync the file system of an open directory to disk."""
    if _libc.syncfs(descriptor):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
