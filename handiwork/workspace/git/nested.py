"""Repositories nested in a folder that an agent works in, in place: finding them, and making them harmless.

The programs that a repository's settings and hooks name run as any user who calls git in it. Reads and writes go
through ``safe_open``, which follows no link.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.workspace.files.safe_open import LONGEST_PATH, join, open_dir, open_parent
from handiwork.workspace.git.bare import is_git_dir
from handiwork.workspace.git.config import ConfigError, format_config, parse_config
from handiwork.workspace.git.directory import harmless_settings
from handiwork.workspace.git.repository import read_regular

_LARGEST = 1 << 20


def find_git_paths(root: Path, skip: Collection[str] = ()) -> list[str]:
    """Return each ``.git`` below ``root``, except its own, and each directory that git takes for a bare repository.

    Does not enter the ``skip`` paths. Raises SandboxError for a repository that mounts cannot protect.
    """
    paths: list[str] = []
    seen = {".git", *skip}
    for folder, names in _directories(root, seen):
        if folder and ".git" in names:
            path = f"{folder}/.git"
            if (root / path).is_symlink():
                raise SandboxError(f"{root / path} is a symbolic link, so work in place is not safe: work on a copy.")
            paths.append(path)
            seen.add(path)
        if is_git_dir(names):
            if not folder:
                raise SandboxError(f"{root} is a bare repository, so work in place is not safe: work on a copy.")
            paths.append(folder)
            seen.update(f"{folder}/{name}" for name in names)
    return paths


def make_harmless(root: Path, protected: Collection[str]) -> None:
    """Disable the programs of repositories below ``root``, except its own and the ``protected`` paths.

    Removes hooks, settings that name a program or a file, and references that lead out of ``root``. Raises OSError if
    a file cannot be changed.
    """
    root = root.resolve()
    for folder, names in _directories(root, {".git", *protected}, repair=True):
        if folder and ".git" in names and f"{folder}/.git" not in protected and _leads_out(root, folder):
            with open_dir(root, folder) as directory:
                os.unlink(".git", dir_fd=directory)
        if is_git_dir(names) or folder.endswith("/.git"):
            with suppress(FileNotFoundError), open_dir(root, folder) as directory:
                _clean(root, folder, directory)


def _directories(root: Path, skip: Collection[str], *, repair: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield every directory with the names in it, parents first; the caller may add to ``skip`` during iteration.

    With ``repair``, give this user access to own directories that cannot be listed: git may still enter them.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = _entries(root, folder, repair=repair)
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield folder, [entry.name for entry in entries]
        for entry in entries:
            path = join(folder, entry.name)
            # Git cannot work with longer paths.
            if path not in skip and len(os.fsencode(path)) <= LONGEST_PATH and entry.is_dir(follow_symlinks=False):
                pending.append(path)


def _entries(root: Path, folder: str, *, repair: bool) -> list[os.DirEntry[str]]:
    for attempt in (1, 2):
        try:
            with open_dir(root, folder) as descriptor, os.scandir(descriptor) as entries:
                results = list(entries)
                for entry in results:
                    entry.is_dir(follow_symlinks=False)  # may need a stat: do it while the directory is open
                return results
        except PermissionError:
            if attempt == 2 or not repair or not folder or not _open_up(root, folder):
                break
    return []


def _open_up(root: Path, folder: str) -> bool:
    """Give the owner of a directory full access to it; return False if this user is not the owner."""
    with open_parent(root, folder) as (parent, name):
        descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            return False
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(status.st_mode) | 0o700)
    finally:
        os.close(descriptor)
    return True


def _leads_out(root: Path, folder: str) -> bool:
    """Return whether the ``.git`` in ``folder`` is a link, or a file that names a directory outside ``root``."""
    with suppress(FileNotFoundError), open_dir(root, folder) as directory:
        status = _status(".git", directory)
        if status is None or stat.S_ISDIR(status.st_mode):
            return False
        target = read_regular(root, join(folder, ".git"), _LARGEST) if status.st_size <= _LARGEST else None
        return target is None or not _is_inside(root, folder, target.removeprefix(b"gitdir: "))
    return False


def _is_inside(root: Path, folder: str, target: bytes) -> bool:
    """Return whether a path relative to ``folder`` stays inside ``root`` once links are resolved."""
    try:
        return Path(os.path.realpath(root / folder / os.fsdecode(target.rstrip(b"\r\n")))).is_relative_to(root)
    except ValueError:
        return False


def _clean(root: Path, folder: str, directory: int) -> None:
    """Clean the repository at ``folder``, whose descriptor is ``directory``."""
    for name in ("hooks", "config.worktree"):
        _remove(name, directory)
    for name in ("objects", "refs", "info"):
        if (status := _status(name, directory)) and stat.S_ISLNK(status.st_mode):
            os.unlink(name, dir_fd=directory)
    # A common directory without a HEAD would not be found and cleaned.
    if not (_is_inside(root, folder, common := _common(root, folder, directory)) and _has_head(root / folder, common)):
        _remove("commondir", directory)
    with suppress(FileNotFoundError, NotADirectoryError), open_dir(root, join(folder, "objects")) as objects:
        if (status := _status("info", objects)) and stat.S_ISLNK(status.st_mode):
            os.unlink("info", dir_fd=objects)
        with open_dir(root, join(folder, "objects/info")) as info:
            _remove("alternates", info)
    _clean_config(root, folder, directory)


def _clean_config(root: Path, folder: str, directory: int) -> None:
    status = _status("config", directory)
    if status is None:
        return
    data = read_regular(root, join(folder, "config"), _LARGEST) if status.st_size <= _LARGEST else None
    try:
        settings = parse_config(data or b"")
    except ConfigError:
        settings = []
    harmless = harmless_settings(settings)
    if data is not None and harmless == settings and (settings or not data.strip()):
        return
    _remove("config", directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open("config", flags, 0o644, dir_fd=directory), "wb") as file:
        if os.geteuid() == 0:
            owner = os.fstat(directory)
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(format_config(harmless))


def _common(root: Path, folder: str, directory: int) -> bytes:
    """Return the common directory that a repository names; its own (".") if it names none."""
    status = _status("commondir", directory)
    if status is None:
        return b"."
    data = read_regular(root, join(folder, "commondir"), _LARGEST) if status.st_size <= _LARGEST else None
    return b"\0" if data is None else data  # an invalid path: only a regular file counts


def _has_head(git_dir: Path, common: bytes) -> bool:
    return os.path.lexists(git_dir / os.fsdecode(common.rstrip(b"\r\n")) / "HEAD")


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remove(name: str, directory: int) -> None:
    """Remove the file or directory ``name`` if it exists."""
    status = _status(name, directory)
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)
