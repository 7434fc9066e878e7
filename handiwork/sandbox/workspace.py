"""The workspace: a copy of the user's directory for an agent to work on."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from handiwork.paths import data_dir
from handiwork.sandbox.gitdir import copy_git_dir
from handiwork.sandbox.manifest import CHUNK, Entry, Manifest, digest, load_manifest, save_manifest
from handiwork.sandbox.safe_open import WorkspaceError
from handiwork.sandbox.selection import Selection, select

Progress = Callable[[int, int], None]
"""Called with the numbers of files and bytes copied so far."""

_FICLONE = 0x40049409
_BATCH = 200
_SMALL = 1 << 16


@dataclass(frozen=True)
class Workspace:
    """The copy of ``source`` in ``base``, which nobody writes to: sandboxes put a layer of their own above it."""

    source: Path
    base: Path
    mounts: tuple[str, ...]
    """Ignored directories, relative to the source, too big to copy: to be mounted from there, read-only."""

    left_out: tuple[str, ...]
    """Neither copied nor to be mounted: ignored secrets, big ignored files, what cannot be read."""

    tree: str = ""
    """The snapshot that a fork began with, "" for none."""

    @classmethod
    def load(cls, session_dir: Path) -> Workspace:
        """The workspace that ``make_copy`` made there. Raises WorkspaceError when there is none."""
        try:
            saved = json.loads((session_dir / "workspace.json").read_text())
        except FileNotFoundError as error:
            raise WorkspaceError(f"there is no workspace in {session_dir}; start a new session") from error
        base = Path(os.path.normpath(session_dir / saved.get("base", "base")))
        return cls(Path(saved["source"]), base, tuple(saved["mounts"]), tuple(saved["left_out"]), saved.get("tree", ""))

    def save(self, session_dir: Path) -> None:
        """Write it there, where ``load`` finds it; the base may be that of a session beside this one."""
        base = os.path.relpath(self.base, session_dir)
        saved = {"source": str(self.source), "base": base, "mounts": self.mounts, "left_out": self.left_out}
        (session_dir / "workspace.json").write_text(json.dumps({**saved, "tree": self.tree}))

    def manifest(self) -> Manifest:
        """What was copied."""
        return load_manifest(self.base.parent / "manifest.json")


def make_copy(source: Path, session_dir: Path, *, force: bool = False, progress: Progress | None = None) -> Workspace:
    """Copy ``source`` to ``session_dir``/base, with its ``.git`` but without what git ignores and is big or secret.

    Blocks while it copies. The home directory and "/" need ``force``. Raises WorkspaceError.
    """
    source = _checked(source, force)
    session_dir = session_dir.absolute()
    base = session_dir / "base"
    if base.exists():
        raise WorkspaceError(f"{session_dir} has a workspace already; use another session")
    chosen = select(source, frozenset({session_dir.resolve(), data_dir().resolve()}))
    base.mkdir(parents=True, mode=0o700)
    try:
        manifest = _Copier(source, base, progress).copy(chosen)
        _keep(base, source.stat(), 0o700)
        save_manifest(manifest, session_dir / "manifest.json")
        workspace = Workspace(source, base, tuple(sorted(chosen.mounts)), tuple(sorted(chosen.left_out)))
        workspace.save(session_dir)
    except BaseException as error:
        shutil.rmtree(base, ignore_errors=True)
        if isinstance(error, OSError):
            raise WorkspaceError(f"{source} cannot be copied to {session_dir}: {error}") from error
        raise
    return workspace


def _checked(source: Path, force: bool) -> Path:
    if not source.exists():
        raise WorkspaceError(f"{source} does not exist; name a directory to work in")
    source = source.resolve()
    if not source.is_dir():
        raise WorkspaceError(f"{source} is not a directory; name the directory it is in")
    if not os.access(source, os.R_OK | os.X_OK):
        raise WorkspaceError(f"{source} cannot be read by this user; change its mode or its owner")
    if not force and source in (Path("/"), Path.home().resolve()):
        raise WorkspaceError(
            f"{source} is a whole {'system' if source == Path('/') else 'home directory'};"
            " go to the project's directory, or insist with force"
        )
    return source


class _Copier:
    """Copies what was selected and notes what it copied."""

    def __init__(self, source: Path, base: Path, progress: Progress | None) -> None:
        self.source = source
        self.base = base
        self.progress = progress
        self.files = self.bytes = 0

    def copy(self, chosen: Selection) -> Manifest:
        manifest: Manifest = {}
        for path in chosen.directories:
            (self.base / path).mkdir(mode=0o700)
        for path in chosen.repositories:
            copy_git_dir(self.source / path, self.base / path, self.copy_private)
        paths = list(chosen.files.items())
        batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
        with ThreadPoolExecutor(2) as threads:
            for batch in threads.map(self.copy_batch, batches):
                for path, entry in batch:
                    if isinstance(entry, Entry):
                        manifest[path] = entry
                    elif isinstance(entry, PermissionError):
                        chosen.left_out.append(path)
                self.count(len(batch), sum(entry.size for _, entry in batch if isinstance(entry, Entry)))
        for path, found in reversed(chosen.directories.items()):
            # The owner can always write, else the session's folder could not be removed.
            mode = stat.S_IFDIR | stat.S_IMODE(found.st_mode) | 0o700
            _keep(self.base / path, found, mode)
            manifest[path] = Entry("dir", mode, 0, found.st_mtime_ns)
        return manifest

    def copy_batch(self, batch: list[tuple[str, os.stat_result]]) -> list[tuple[str, Entry | OSError]]:
        """Copy some files; one that is gone or cannot be read comes back as its error."""
        results: list[tuple[str, Entry | OSError]] = []
        for path, found in batch:
            try:
                results.append((path, _copy(self.source / path, self.base / path, found)))
            except (FileNotFoundError, PermissionError) as error:
                results.append((path, error))
        return results

    def copy_private(self, source: Path, target: Path) -> None:
        """Copy a file of a ``.git``."""
        found = source.lstat()
        _copy(source, target, found)
        self.count(1, found.st_size)

    def count(self, files: int, size: int) -> None:
        self.files += files
        self.bytes += size
        if self.progress:
            self.progress(self.files, self.bytes)


def _copy(source: Path, target: Path, found: os.stat_result) -> Entry:
    mode = stat.S_IFMT(found.st_mode) | (found.st_mode & 0o777)
    if stat.S_ISLNK(mode):
        link = os.readlink(source)
        os.symlink(link, target)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)
        return Entry("link", mode, len(os.fsencode(link)), found.st_mtime_ns, target=link)
    with open(source, "rb") as reader, open(target, "xb") as writer:
        sha256 = _copy_bytes(reader, writer, found.st_size)
        writer.flush()
        _keep(writer.fileno(), found, mode)
        return Entry("file", mode, writer.tell(), found.st_mtime_ns, sha256)


def _copy_bytes(reader: BinaryIO, writer: BinaryIO, size: int) -> str:
    """Copy by reflink where the file system can, and return the SHA-256."""
    if size > _SMALL:
        try:
            fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
            writer.seek(0, os.SEEK_END)
            return digest(reader)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
    sha256 = hashlib.sha256()
    while block := reader.read(CHUNK):
        sha256.update(block)
        writer.write(block)
    return sha256.hexdigest()


def _keep(target: Path | int, found: os.stat_result, mode: int) -> None:
    if os.geteuid() == 0:
        os.chown(target, found.st_uid, found.st_gid)
    os.chmod(target, stat.S_IMODE(mode))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
