"""Select the files of the user's directory to copy into a workspace."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.files.safe_open import entries_beneath, join, open_resolved
from handiwork.workspace.git.command import user_excludes
from handiwork.workspace.git.ignore import IGNORE_FILE, IgnoreRules, rules_for
from handiwork.workspace.git.repository import is_empty_directory, repository_around, repository_at

BIG = 50_000_000
"""Size in bytes above which an ignored directory is mounted instead of copied."""

JUNK = frozenset({"__pycache__", "node_modules", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
"""Directories that tools generate, disposable whether or not git ignores them."""

_HEAVY = JUNK | {"venv", "target", ".tox", ".nox", ".gradle"}
_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages"})
_SECRET = re.compile(
    r"\.env(\..*)?|.*\.env|.*\.(pem|key|p12|pfx|jks|keystore|kdbx)|id_(rsa|dsa|ecdsa|ed25519)"
    r"|.*credentials.*\.json|client_secret.*\.json|service[-_]?account.*\.json|secrets?\.(json|ya?ml|toml)"
    r"|\.(netrc|npmrc|pypirc|pgpass|git-credentials|htpasswd)|credentials",
    re.IGNORECASE,
)


@dataclass
class Selection:
    """Paths to copy, to mount and to leave out, relative to the source."""

    directories: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    files: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    """Regular files and symbolic links."""

    repositories: list[str] = field(default_factory=list[str])
    """Directories that have a ``.git``; "" is the source."""

    mounts: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


def select(source: Path, skip: frozenset[Path]) -> Selection:
    """Select from everything below ``source`` except the ``skip`` paths; unreadable directories are left out.

    Raises WorkspaceError if a repository cannot be read or git is not installed.
    """
    root = open_resolved(source)
    try:
        return _select(source, root, skip)
    finally:
        os.close(root)


def _select(source: Path, root: int, skip: frozenset[Path]) -> Selection:
    selection = Selection()
    excludes, outermost = _rules_around(source)
    pending = [("", False, outermost)]
    while pending:
        folder, in_ignored, rules = pending.pop()
        entries = _entries(root, folder)
        if entries is None:
            selection.left_out.append(f"{folder}/")
            continue
        names = {name for name, _ in entries}
        if folder and ".git" in names and not in_ignored and (inner := repository_at(source / folder)):
            rules = IgnoreRules.of(inner, excludes or user_excludes())
        if folder and rules is not None and IGNORE_FILE in names:
            rules = rules.with_own_file()
        for name, status in entries:
            path = join(folder, name)
            is_directory = stat.S_ISDIR(status.st_mode)
            if name == ".git":
                _add_repository(source, folder, selection)
            elif source / path in skip:
                continue
            elif is_directory:
                ignored = rules is not None and rules.ignores(name, is_directory=True)
                heavy = name in _HEAVY if rules is None else ignored
                if not (heavy and not in_ignored and _set_aside(root, path, selection)):
                    selection.directories[path] = status
                    below = None if ignored or rules is None else rules.inside(name)
                    pending.append((path, in_ignored or ignored, below))
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                ignored = in_ignored or (rules is not None and rules.ignores(name, is_directory=False))
                _add_file(path, status, ignored, selection)
    return selection


def _rules_around(source: Path) -> tuple[Path | None, IgnoreRules | None]:
    """Return the user's own ignore file and the rules at ``source``.

    Both are None outside a repository; the rules are also None if the repository ignores ``source``.
    """
    repository = repository_around(source)
    if repository is None:
        return None, None
    excludes = user_excludes()
    return excludes, rules_for(source, repository, excludes)


def _add_repository(source: Path, folder: str, selection: Selection) -> None:
    """Select a ``.git``; leave out a nested one that is unreadable or points to an outside repository unaware of it."""
    git_dir = source / folder / ".git"
    repository = repository_at(source / folder)
    if repository and (not folder or repository.is_within(source) or repository.knows_worktree()):
        selection.repositories.append(folder)
    elif repository is None and is_empty_directory(git_dir):
        pass  # git ignores it; a killed sandbox in place leaves one behind
    elif folder:
        selection.left_out.append(f"{folder}/.git")
    else:
        raise WorkspaceError(
            f"{git_dir} cannot be read as a repository; repair it, or move it away to work without git"
        )


def _entries(root: int, path: str) -> list[tuple[str, os.stat_result]] | None:
    """Return names and status of a directory's entries; None if it cannot be read or has become a link."""
    try:
        return entries_beneath(root, path)
    except OSError:
        return None  # its mode may permit listing, but not searching


def _set_aside(root: int, path: str, selection: Selection) -> bool:
    """Mount a big ignored directory, or leave it out if it holds a secret; return False for a small one."""
    size, secret = _measure(root, path)
    if size <= BIG:
        return False
    if secret:
        selection.left_out.append(f"{path}/")
    else:
        selection.mounts.append(path)
    return True


def _measure(root: int, path: str) -> tuple[int, bool]:
    """Return the bytes in a directory and whether it holds a secret; may stop early in a big one."""
    size, secret, pending = 0, False, [path]
    while pending:
        folder = pending.pop()
        trusted = _in_packages(folder)
        for name, status in _entries(root, folder) or ():
            if stat.S_ISDIR(status.st_mode):
                pending.append(f"{folder}/{name}")
                continue
            secret = secret or (not trusted and _SECRET.fullmatch(name) is not None)
            size += status.st_size
        if size > BIG and (secret or trusted):
            break  # installed packages can have a hundred thousand files
    return size, secret


def _in_packages(path: str) -> bool:
    return not _PACKAGES.isdisjoint(path.split("/"))


def _add_file(path: str, status: os.stat_result, ignored: bool, selection: Selection) -> None:
    if ignored and (status.st_size > BIG or (_is_secret(path) and not _in_packages(path))):
        selection.left_out.append(path)
    else:
        selection.files[path] = status


def _is_secret(path: str) -> bool:
    return _SECRET.fullmatch(path.rpartition("/")[2]) is not None
