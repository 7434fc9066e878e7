"""Writing many files at once so that either all are written or none."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from handiwork.sandbox.changes import Side
from handiwork.sandbox.manifest import CHUNK
from handiwork.sandbox.safe_open import WorkspaceError, look, open_parent, parts_of, walk


@dataclass(frozen=True)
class Content:
    """A file or link to write: the bytes come from ``source``, ``mode`` has permission bits."""

    source: Side
    mode: int


@dataclass(frozen=True)
class Replacement:
    """What is to be at ``path``; None is nothing."""

    path: str
    new: Content | None


def replace_files(target: Path, replacements: Sequence[Replacement]) -> None:
    """Write and delete files below ``target``, following no symbolic link.

    Everything is first written beside them, then moved into place; directories left empty are removed. Raises
    WorkspaceError when something cannot be written; what was moved already has then been moved back.
    """
    needed = sum(step.new.source.size for step in replacements if step.new)
    if needed > shutil.disk_usage(target).free:
        raise WorkspaceError(f"{target} has not enough free space for {needed} bytes; nothing was changed")
    try:
        staging = tempfile.mkdtemp(prefix=".handiwork-", dir=target)
    except OSError as error:
        raise WorkspaceError(f"{target} cannot be written: {error.strerror}") from error
    exchange = _Exchange(target, os.path.basename(staging))
    try:
        exchange.run(replacements)
    except OSError as error:
        raise WorkspaceError(
            f"{error.filename or target} cannot be written: {error.strerror}; nothing was changed"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class _Exchange:
    """Moves staged files into place and remembers how to take each step back."""

    def __init__(self, target: Path, staging: str) -> None:
        self.target = target
        self.staging = staging
        self.steps_back: list[Callable[[], None]] = []

    def run(self, replacements: Sequence[Replacement]) -> None:
        for number, step in enumerate(replacements):
            if step.new:
                self.stage(f"new{number}", step.path, step.new)
        try:
            # Deletions come first: a directory may take the place of a file, or the other way round.
            for number, step in enumerate(replacements):
                if not step.new:
                    self.set_aside(step.path, f"old{number}")
            for number, step in enumerate(replacements):
                if step.new:
                    self.make_parents(step.path)
                    self.clear_directory(step.path)
                    self.put(step.path, number)
            for step in replacements:
                if not step.new:
                    self.remove_empty_parents(step.path)
        except BaseException:
            for step_back in reversed(self.steps_back):
                step_back()
            raise

    def stage(self, name: str, path: str, content: Content) -> None:
        source, staged = content.source, self.target / self.staging / name
        if source.is_link:
            os.symlink(source.read(), os.fsencode(staged))
        else:
            # Opening with the mode lets the umask bind a new file; one that was there keeps its own.
            descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, content.mode)
            with os.fdopen(descriptor, "wb") as writer, source.open() as reader:
                shutil.copyfileobj(reader, writer, CHUNK)
                if (mine := look(self.target, path)) and stat.S_ISREG(mine.st_mode):
                    os.fchmod(writer.fileno(), content.mode)
        if os.geteuid() == 0:
            owner = self.owner_of(path)
            os.chown(staged, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def owner_of(self, path: str) -> os.stat_result:
        """The nearest thing that is there already: its owner is the new file's."""
        while path:
            if found := look(self.target, path):
                return found
            path = path.rpartition("/")[0]
        return self.target.stat()

    def set_aside(self, path: str, backup: str) -> None:
        self.move(path, f"{self.staging}/{backup}")
        self.steps_back.append(lambda: self.move(f"{self.staging}/{backup}", path))

    def put(self, path: str, number: int) -> None:
        staged, backup = f"{self.staging}/new{number}", f"{self.staging}/old{number}"
        if look(self.target, path) is None:
            self.move(staged, path)
            self.steps_back.append(lambda: self.move(path, staged))
            return
        try:
            # With a second name for the old file there is no moment without a file.
            with self.both(path, backup) as ((parent, name), (folder, kept)):
                os.link(name, kept, src_dir_fd=parent, dst_dir_fd=folder, follow_symlinks=False)
            self.steps_back.append(lambda: self.move(backup, path))
        except PermissionError:
            self.set_aside(path, backup)  # a file system without hard links
        self.move(staged, path)

    def move(self, old: str, new: str) -> None:
        with self.both(old, new) as ((source, name), (folder, new_name)):
            os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=folder)

    @contextmanager
    def both(self, old: str, new: str) -> Generator[tuple[tuple[int, str], tuple[int, str]]]:
        with open_parent(self.target, old) as one, open_parent(self.target, new) as other:
            yield one, other

    def make_parents(self, path: str) -> None:
        parts = parts_of(path)
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            if look(self.target, parent) is None:
                self.make_directory(parent, 0o777)
                self.steps_back.append(lambda parent=parent: self.remove_directory(parent))

    def clear_directory(self, path: str) -> None:
        """Make way for a file where a directory is that holds nothing any more but empty ones."""
        if (found := look(self.target, path)) and stat.S_ISDIR(found.st_mode):
            below = [(name, status.st_mode) for name, status in walk(self.target, path)]
            for name, mode in reversed([(path, found.st_mode), *below]):
                self.remove_directory(name)
                self.steps_back.append(lambda name=name, mode=mode: self.make_directory(name, mode))

    def remove_empty_parents(self, path: str) -> None:
        while path := path.rpartition("/")[0]:
            found = look(self.target, path)
            if found and stat.S_ISDIR(found.st_mode):
                try:
                    self.remove_directory(path)
                except OSError:
                    return  # something is in it
                mode = found.st_mode
                self.steps_back.append(lambda path=path, mode=mode: self.make_directory(path, mode))

    def make_directory(self, path: str, mode: int) -> None:
        owner = self.owner_of(path)
        with open_parent(self.target, path) as (parent, name):
            os.mkdir(name, stat.S_IMODE(mode), dir_fd=parent)
            if os.geteuid() == 0:
                os.chown(name, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)

    def remove_directory(self, path: str) -> None:
        with open_parent(self.target, path) as (parent, name):
            os.rmdir(name, dir_fd=parent)
