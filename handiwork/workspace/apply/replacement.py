"""Replacement of many files at once: either all are written or none."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from handiwork.errors import DiskError, WorkspaceError
from handiwork.workspace.apply.journal import ApplyJournal, Attributes, Identity, Moves, Step, identity
from handiwork.workspace.changes import Side
from handiwork.workspace.files.copy import copy_data
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.safe_open import look, look_at, parent_beneath, parts_of, walk

Version = tuple[int, int]
"""Size and modification time of a file; a file system may give it another inode when it is moved."""

_NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK})
"""Errors of a file system that has no hard links, or no more of a file."""


@dataclass(frozen=True)
class Content:
    """A file or link to write: ``source`` has the bytes, ``mode`` the permission bits.

    The umask applies to the mode of a new file unless it is ``exact``.
    """

    source: Side
    mode: int
    exact: bool = False


@dataclass(frozen=True)
class Replacement:
    """The new content of ``path``; None deletes it. ``has_edits`` is True if it includes the user's edits."""

    path: str
    new: Content | None
    has_edits: bool = False


def replace_files(
    journal: ApplyJournal,
    replacements: Sequence[Replacement],
    prune: Collection[str] | None = None,
    attributes: Mapping[str, Attributes] | None = None,
    seen: Mapping[str, Version | None] | None = None,
) -> None:
    """Write and delete files below the journal's directory, following no symbolic link.

    Writes every new file to the staging folder, moves them into place, and removes the directories of ``prune`` left
    empty; None means all. A directory that it creates gets its ``attributes``, if there are any. Raises WorkspaceError
    if a file cannot be written, or is no longer as it was ``seen``; closing the journal then undoes the moves already
    made.
    """
    if not replacements:
        return
    target = journal.target
    size = sum(step.new.source.size for step in replacements if step.new)
    room = os.fstatvfs(journal.root)
    if size > room.f_bavail * room.f_frsize:
        raise DiskError(f"{target} has not enough free space for {size} bytes; nothing was changed")
    try:
        _Exchange(journal, prune, attributes or {}).run(replacements, seen or {})
    except OSError as error:
        location = f"{target} ({quoted(str(error.filename))})" if error.filename else target
        raise not_written(location, error) from error


def version_of(status: os.stat_result | None) -> Version | None:
    """Return the version of a file or link; None if there is none, or a directory."""
    return (status.st_size, status.st_mtime_ns) if status and not stat.S_ISDIR(status.st_mode) else None


def not_written(place: str | Path, error: OSError) -> WorkspaceError:
    """Return the error for a place that cannot be written."""
    kind = DiskError if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS) else WorkspaceError
    return kind(f"{place} cannot be written: {error.strerror}; nothing was changed")


class _Exchange:
    """Stages new files, records all moves in the journal, and moves the files into place."""

    def __init__(
        self, journal: ApplyJournal, prune: Collection[str] | None, attributes: Mapping[str, Attributes]
    ) -> None:
        self.journal = journal
        self.prune = prune
        self.attributes = attributes
        self.root = journal.root
        self.staging = journal.begin()

    def run(self, replacements: Sequence[Replacement], seen: Mapping[str, Version | None]) -> None:
        steps: list[Step] = []
        for number, step in enumerate(replacements):
            staged = self.stage(f"new{number}", step.path, step.new) if step.new else None
            status = look_at(self.root, step.path)
            # A file system that ignores case finds a file of another name too, which nobody has seen by this one.
            is_file = status is not None and not stat.S_ISDIR(status.st_mode) and seen.get(step.path, ()) is not None
            steps.append(Step(step.path, is_file, staged))
        moves = Moves(steps, self.missing_parents(steps), removable(self.journal.target, replacements))
        self.journal.record(moves)
        # Deletions come first: a directory may replace a file, or a file a directory.
        for number, step in enumerate(steps):
            if not step.staged:
                self.set_aside(step.path, number)
        for number, step in enumerate(steps):
            if step.staged:
                self.make_parents(step.path)
                self.clear_directory(step.path)
                self.put(step.path, number)
        for step in steps:
            if not step.staged:
                self.remove_empty_parents(step.path)
        # The old files are links to the user's: a write that came since they were read shows here.
        edited = [
            step.path
            for number, step in enumerate(steps)
            if step.path in seen and version_of(look_at(self.staging, f"old{number}")) != seen[step.path]
        ]
        if edited:
            names = ", ".join(map(quoted, edited))
            raise WorkspaceError(f"nothing was changed, because {names} changed in the meantime; try again")
        self.journal.done()

    def missing_parents(self, steps: Sequence[Step]) -> list[str]:
        """Return the directories that ``make_parents`` will create."""
        missing: dict[str, None] = {}
        for step in steps:
            path = step.path
            while step.staged and (path := path.rpartition("/")[0]) and path not in missing:
                status = look_at(self.root, path)
                if status is None or not stat.S_ISDIR(status.st_mode):
                    missing[path] = None
        return list(missing)

    def stage(self, name: str, path: str, content: Content) -> Identity:
        source = content.source
        if source.is_link:
            os.symlink(source.read(), os.fsencode(name), dir_fd=self.staging)
        else:
            # The umask applies to the mode of a new file; other files get their mode exactly, below.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, content.mode, dir_fd=self.staging)
            with os.fdopen(descriptor, "wb") as writer, source.open() as reader:
                if source.content is None:
                    copy_data(reader.fileno(), writer.fileno())
                else:
                    writer.write(source.content)
                    writer.flush()
                mine = look_at(self.root, path)
                if content.exact or (mine and stat.S_ISREG(mine.st_mode)):
                    os.fchmod(writer.fileno(), content.mode)
        if os.geteuid() == 0:
            owner = self.owner_of(path)
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=self.staging, follow_symlinks=False)
        elif (group := self.group_of(path)) is not None:
            with suppress(PermissionError):  # the user is not in it
                os.chown(name, -1, group, dir_fd=self.staging, follow_symlinks=False)
        return identity(os.stat(name, dir_fd=self.staging, follow_symlinks=False))

    def owner_of(self, path: str) -> os.stat_result:
        """Return the status of the nearest existing path, whose owner the new file gets."""
        while path:
            if status := look_at(self.root, path):
                return status
            path = path.rpartition("/")[0]
        return os.fstat(self.root)

    def group_of(self, path: str) -> int | None:
        """Return the group of the file at the path, or the one that its folder gives to new files; None without any."""
        if status := look_at(self.root, path):
            return status.st_gid
        folder = self.owner_of(path)
        return folder.st_gid if folder.st_mode & stat.S_ISGID else None

    def set_aside(self, path: str, number: int) -> None:
        with parent_beneath(self.root, path) as (parent, name):
            os.rename(name, f"old{number}", src_dir_fd=parent, dst_dir_fd=self.staging)

    def put(self, path: str, number: int) -> None:
        with parent_beneath(self.root, path) as (parent, name):
            if look_at(parent, name) is not None:
                with suppress(FileNotFoundError):  # it was set aside by a name like this one, which a cache still has
                    self.keep_old(parent, name, f"old{number}")
            os.rename(f"new{number}", name, src_dir_fd=self.staging, dst_dir_fd=parent)

    def keep_old(self, parent: int, name: str, old_name: str) -> None:
        try:
            # A second link to the old file, so that the path always has a file.
            os.link(name, old_name, src_dir_fd=parent, dst_dir_fd=self.staging, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.rename(name, old_name, src_dir_fd=parent, dst_dir_fd=self.staging)

    def make_parents(self, path: str) -> None:
        parts = parts_of(path)
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            if look_at(self.root, parent) is not None:
                continue
            if parent in self.attributes:
                self.journal.make_directory(parent, self.attributes[parent])
            else:
                owner = self.owner_of(parent)
                with parent_beneath(self.root, parent) as (directory, name):
                    os.mkdir(name, 0o777, dir_fd=directory)
                    if os.geteuid() == 0:
                        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)

    def clear_directory(self, path: str) -> None:
        """Remove a directory that a file replaces; it holds only empty directories by now."""
        if (status := look_at(self.root, path)) and stat.S_ISDIR(status.st_mode):
            below = [name for name, _ in walk(self.journal.target, path)]
            for name in reversed([path, *below]):
                self.journal.remove_directory(name)

    def remove_empty_parents(self, path: str) -> None:
        while path := path.rpartition("/")[0]:
            status = look_at(self.root, path)
            if status and stat.S_ISDIR(status.st_mode):
                if self.prune is not None and path not in self.prune:
                    return
                try:
                    self.journal.remove_directory(path)
                except OSError:
                    return  # it is not empty


def removable(target: Path, replacements: Sequence[Replacement]) -> dict[str, Attributes]:
    """Return the directories below ``target`` that may be removed: emptied ones, and those replaced by a file."""
    directories: dict[str, Attributes] = {}
    for replacement in replacements:
        path = replacement.path
        if replacement.new:
            status = look(target, path)
            if status and stat.S_ISDIR(status.st_mode):
                below = walk(target, path)
                inside = ((name, below_status) for name, below_status in below if stat.S_ISDIR(below_status.st_mode))
                directories |= {name: _attributes(below_status) for name, below_status in ((path, status), *inside)}
            continue
        while (path := path.rpartition("/")[0]) and path not in directories:
            status = look(target, path)
            if status and stat.S_ISDIR(status.st_mode):
                directories[path] = _attributes(status)
    return directories


def _attributes(status: os.stat_result) -> Attributes:
    return status.st_mode, status.st_uid, status.st_gid
