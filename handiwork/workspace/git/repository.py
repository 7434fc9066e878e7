"""Discovery of repositories, and reading of settings and index without git, which would run programs they name."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.files.safe_open import open_dir, open_file
from handiwork.workspace.git.config import ConfigError, Setting, parse_config
from handiwork.workspace.git.index import Index, IndexFormatError, parse_index

_LARGEST_INDEX = 1 << 30
_LARGEST_TEXT = 1 << 20


@dataclass(frozen=True)
class Repository:
    """A repository with a worktree; ``common`` is the main worktree's ``.git``, for a linked one unlike ``git_dir``."""

    worktree: Path
    git_dir: Path
    common: Path

    @cached_property
    def settings(self) -> dict[str, str | None]:
        """Return the repository's own settings, the last of each name. Raises WorkspaceError."""
        return dict(self.read_settings())

    def read_settings(self) -> list[Setting]:
        """Return the repository's own settings in order, without the user's. Raises WorkspaceError."""
        settings = _read_settings(self.common, "config")
        if is_true(dict(settings).get("extensions.worktreeconfig", "")):
            settings += _read_settings(self.git_dir, "config.worktree")
        return settings

    def is_within(self, directory: Path) -> bool:
        """Return whether the whole repository is below ``directory``, a path without links."""
        return self.git_dir.is_relative_to(directory) and self.common.is_relative_to(directory)

    def knows_worktree(self) -> bool:
        """Return whether the repository names its worktree, as those of linked worktrees and submodules do."""
        if self.git_dir != self.common and self.common not in self.git_dir.parents:
            return False  # any folder can call itself a linked worktree of any repository
        target = read_regular(self.git_dir, "gitdir", _LARGEST_TEXT)
        if target is not None:
            return (self.git_dir / os.fsdecode(target.rstrip(b"\r\n"))).resolve() == (self.worktree / ".git").resolve()
        worktree = self.settings.get("core.worktree")
        return bool(worktree) and (self.git_dir / worktree).resolve() == self.worktree.resolve()

    @cached_property
    def index(self) -> Index:
        """Return the paths the repository tracks. Raises WorkspaceError."""
        data = read_regular(self.git_dir, "index", _LARGEST_INDEX)
        if data is None:
            return Index(frozenset(), frozenset(), frozenset())
        sha256 = (self.settings.get("extensions.objectformat") or "").lower() == "sha256"
        try:
            return parse_index(data, 32 if sha256 else 20)
        except IndexFormatError as error:
            raise WorkspaceError(f"the index {self.git_dir / 'index'} cannot be read: {error}") from error


def repository_at(worktree: Path) -> Repository | None:
    """Return the repository whose ``.git`` is in ``worktree``; None if git could use none."""
    git_dir = worktree / ".git"
    try:
        if stat.S_ISREG(git_dir.lstat().st_mode):
            target = (read_regular(worktree, ".git", _LARGEST_TEXT) or b"").rstrip(b"\r\n")
            if not target.startswith(b"gitdir: "):
                return None
            git_dir = worktree / os.fsdecode(target.removeprefix(b"gitdir: "))
        git_dir = git_dir.resolve()
        common = common_dir(git_dir)
    except (OSError, RuntimeError, ValueError):
        return None  # a loop of links, or an invalid path
    return Repository(worktree, git_dir, common) if common else None


def common_dir(git_dir: Path) -> Path | None:
    """Return the directory that a repository's worktrees share; None if ``git_dir`` is not a repository."""
    target = read_regular(git_dir, "commondir", _LARGEST_TEXT)
    common = git_dir if target is None else (git_dir / os.fsdecode(target.rstrip(b"\r\n"))).resolve()
    is_repository = os.path.lexists(git_dir / "HEAD") and (common / "objects").is_dir() and (common / "refs").is_dir()
    return common if is_repository else None


def repository_around(directory: Path) -> Repository | None:
    """Return the repository around ``directory`` on the same file system; None outside of one."""
    device = directory.stat().st_dev
    for folder in (directory, *directory.parents):
        if folder.stat().st_dev != device:
            return None
        if repository := repository_at(folder):
            return repository
    return None


def read_regular(root: Path, path: str, limit: int) -> bytes | None:
    """Read a regular file below ``root``, following no link; return None if it cannot be opened.

    Raises WorkspaceError if it has more than ``limit`` bytes.
    """
    try:
        with open_file(root, path) as file:
            data = file.read(limit + 1)
    except WorkspaceError:
        return None
    if len(data) > limit:
        raise WorkspaceError(f"{root / path} has more than {limit} bytes: remove it, or move it away")
    return data


def is_true(value: str | None) -> bool:
    """Return whether git considers the value of a setting true; None stands for a name without "="."""
    return value is None or value.lower() in ("true", "yes", "on", "1")


def _read_settings(git_dir: Path, name: str) -> list[Setting]:
    try:
        return parse_config(read_regular(git_dir, name, _LARGEST_TEXT) or b"")
    except ConfigError as error:
        raise WorkspaceError(
            f"{git_dir / name} cannot be read ({error}); repair it, or move its repository away"
        ) from error


def is_empty_directory(path: Path) -> bool:
    """Return whether ``path`` is an empty directory and not a link."""
    try:
        with open_dir(path) as descriptor:
            return not os.listdir(descriptor)
    except OSError:
        return False
