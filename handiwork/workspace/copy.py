"""The workspace: a copy of the user's directory for an agent to work on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.paths import data_dir, home_dir, private_dirs, write_private
from handiwork.workspace.files.copy import copy_data
from handiwork.workspace.files.safe_open import FILE, open_beneath, open_folder, open_resolved
from handiwork.workspace.git.directory import copy_git_dir
from handiwork.workspace.git.repository import repository_at
from handiwork.workspace.selection import Selection, select
from handiwork.workspace.snapshots.tree import TreeNode

_BATCH = 200

Manifest = dict[str, TreeNode]
"""The mode, size and content of each path of a base at the time of the copy; the value of a directory is not set."""


@dataclass(frozen=True)
class Workspace:
    """The copy of ``source`` in ``base``, which is never written: each sandbox puts its own layer above it."""

    source: Path
    base: Path
    mounts: tuple[str, ...]
    """Ignored directories too big to copy, relative to the source; sandboxes mount the originals read-only."""

    left_out: tuple[str, ...]
    """Paths neither copied nor mounted: ignored secrets, big ignored files, unreadable paths."""

    tree: str = ""
    """The snapshot a fork starts from; "" if none."""

    @classmethod
    def load(cls, session_dir: Path) -> Workspace:
        """Load the workspace saved in ``session_dir``. Raises WorkspaceError if it is missing or damaged."""
        file = session_dir / "workspace.json"
        try:
            saved = json.loads(file.read_bytes())
            base = Path(os.path.normpath(session_dir / saved.get("base", "base")))
            mounts, left_out = (tuple(map(os.fsdecode, saved[name])) for name in ("mounts", "left_out"))
            return cls(Path(saved["source"]), base, mounts, left_out, os.fsdecode(saved.get("tree", "")))
        except FileNotFoundError as error:
            raise WorkspaceError(f"there is no workspace in {session_dir}; start a new session") from error
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise _damaged(file, error) from None

    def save(self, session_dir: Path) -> None:
        """Save the workspace for ``load``; the base may belong to a sibling session."""
        base = os.path.relpath(self.base, session_dir)
        saved = {"source": str(self.source), "base": base, "mounts": self.mounts, "left_out": self.left_out}
        write_private(session_dir / "workspace.json", json.dumps({**saved, "tree": self.tree}))

    def manifest(self) -> Manifest:
        """Load the manifest of the base."""
        return _load_manifest(self.base.parent / "manifest.json")


def make_copy(source: Path, session_dir: Path) -> Workspace:
    """Copy ``source`` to ``session_dir``/base, including ``.git`` but not big or secret files that git ignores.

    Blocks until the copy is complete. Raises WorkspaceError, also for the home directory and "/".
    """
    source = _validate(source)
    session_dir = session_dir.absolute()
    base = session_dir / "base"
    if base.exists():
        raise WorkspaceError(f"{session_dir} has a workspace already; use another session")
    selection = select(source, frozenset({session_dir.resolve(), data_dir().resolve()}))
    private_dirs(session_dir)
    base.mkdir(mode=0o700)
    try:
        with closing(_Copier(source, base)) as copier:
            manifest = copier.copy(selection)
        _set_attributes(base, source.stat(), 0o700)
        _save_manifest(manifest, session_dir / "manifest.json")
        workspace = Workspace(source, base, tuple(sorted(selection.mounts)), tuple(sorted(selection.left_out)))
        workspace.save(session_dir)
    except BaseException as error:
        shutil.rmtree(base, ignore_errors=True)
        if isinstance(error, OSError):
            raise WorkspaceError(f"{source} cannot be copied to {session_dir}: {error}") from error
        raise
    return workspace


def _validate(source: Path) -> Path:
    if not source.exists():
        raise WorkspaceError(f"{source} does not exist; name a directory to work in")
    source = source.resolve()
    if not source.is_dir():
        raise WorkspaceError(f"{source} is not a directory; name the directory it is in")
    if not os.access(source, os.R_OK | os.X_OK):
        raise WorkspaceError(f"{source} cannot be read by this user; change its mode or its owner")
    home = home_dir()
    if source == Path("/") or (home and source == home.resolve()):
        raise WorkspaceError(
            f"{source} is a whole {'system' if source == Path('/') else 'home directory'};"
            " go to the project's directory"
        )
    return source


class _Copier:
    """Copies the selected files and returns their manifest."""

    def __init__(self, source: Path, base: Path) -> None:
        self.source = source
        self.root = open_resolved(source)
        self.base = base

    def close(self) -> None:
        os.close(self.root)

    def copy(self, selection: Selection) -> Manifest:
        manifest: Manifest = {}
        for path in selection.directories:
            (self.base / path).mkdir(mode=0o700)
        for path in selection.repositories:
            if repository := repository_at(self.source / path):
                copy_git_dir(repository, self.base / path, self.copy_private)
        paths = list(selection.files.items())
        batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
        with ThreadPoolExecutor(2) as threads:
            for batch in threads.map(self.copy_batch, batches):
                for path, entry in batch:
                    if isinstance(entry, TreeNode):
                        manifest[path] = entry
                    elif not isinstance(entry, FileNotFoundError):
                        selection.left_out.append(path)
        for path, status in reversed(selection.directories.items()):
            # The owner keeps write permission so that the session's folder can be removed.
            mode = stat.S_IMODE(status.st_mode) | 0o700
            _set_attributes(self.base / path, status, mode)
            manifest[path] = TreeNode("dir", mode, 0, status.st_mtime_ns)
        return manifest

    def copy_batch(self, batch: list[tuple[str, os.stat_result]]) -> list[tuple[str, TreeNode | OSError]]:
        """Copy a batch of files; return an error for each that is missing, unreadable or of another type."""
        results: list[tuple[str, TreeNode | OSError]] = []
        for folder, files in groupby(batch, lambda file: file[0].rpartition("/")[0]):
            try:
                parent = open_folder(self.root, folder)
            except OSError as error:
                results += [(path, error) for path, _ in files]
                continue
            try:
                for path, status in files:
                    try:
                        results.append((path, _copy(parent, path.rpartition("/")[2], self.base / path, status)))
                    except _SourceError as error:
                        results.append((path, error.reason))
            finally:
                os.close(parent)
        return results

    def copy_private(self, parent: int, name: str, target: Path) -> None:
        """Copy a file of a ``.git`` directory."""
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        try:
            _copy(parent, name, target, status)
        except _SourceError as error:
            raise error.reason from None


class _SourceError(Exception):
    """The source file cannot be opened, because of ``reason``."""

    def __init__(self, reason: OSError) -> None:
        self.reason = reason


def _copy(parent: int, name: str, target: Path, status: os.stat_result) -> TreeNode:
    """Copy the file or link ``name`` of an open directory and its attributes. Raises _SourceError, OSError."""
    if stat.S_ISLNK(status.st_mode):
        try:
            link = os.readlink(name, dir_fd=parent)
        except OSError as error:
            raise _SourceError(error) from error
        os.symlink(link, target)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
        return TreeNode("link", status.st_mode & 0o777, len(os.fsencode(link)), status.st_mtime_ns, link)
    try:
        descriptor = open_beneath(parent, name, FILE)
    except OSError as error:
        raise _SourceError(error) from error
    with open(descriptor, "rb") as reader:
        # The file may have been replaced since the selection.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _SourceError(OSError(errno.EINVAL, "it is no longer a regular file", name))
        mode = status.st_mode & 0o777
        with open(target, "x+b") as writer:
            size, sha256 = copy_data(reader.fileno(), writer.fileno())
            _set_attributes(writer.fileno(), status, mode)
            return TreeNode("file", mode, size, status.st_mtime_ns, sha256)


def _set_attributes(target: Path | int, status: os.stat_result, mode: int) -> None:
    if os.geteuid() == 0:
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, mode)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _save_manifest(manifest: Manifest, file: Path) -> None:
    """Write the manifest as JSON: for each path, an array of the node's fields."""
    write_private(file, json.dumps(manifest))


def _load_manifest(file: Path) -> Manifest:
    """Read a manifest written by ``_save_manifest``. Raises WorkspaceError if it cannot be read."""
    try:
        return {path: TreeNode(*fields) for path, fields in json.loads(file.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise _damaged(file, error) from None


def _damaged(file: Path, error: Exception) -> WorkspaceError:
    """Return the error for an unusable file in a session's folder."""
    reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    return WorkspaceError(
        f"{file} is missing or damaged ({reason}), so the files of session {file.parent.name} cannot be used: "
        "restore it from a backup, or delete the session; other sessions are not affected"
    )
