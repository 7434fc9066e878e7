"""Choosing what of the user's directory goes into a workspace's copy."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.files.safe_open import DIRECTORY, entries_of, open_beneath, open_resolved
from handiwork.workspace.git.command import user_excludes
from handiwork.workspace.git.ignore import IGNORE_FILE, IgnoreRules, rules_for
from handiwork.workspace.git.repository import is_empty_directory, repository_around, repository_at

BIG = 50_000_000
"""Bytes from which on an ignored directory is mounted instead of copied."""

JUNK = frozenset({"__pycache__", "node_modules", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
"""Directories that tools make and nobody keeps, whether or not git was told to ignore them."""

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
    """Paths relative to the source: what to copy, and what not."""

    directories: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    files: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    """Regular files and symbolic links."""

    repositories: list[str] = field(default_factory=list[str])
    """Directories that have a ``.git``; "" is the source."""

    mounts: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


def select(source: Path, skip: frozenset[Path]) -> Selection:
    """Look at everything below ``source`` but the ``skip`` paths; what cannot be read counts as left out.

    Raises WorkspaceError for a repository that cannot be read, and if git is not installed.
    """
    root = open_resolved(source)
    try:
        return _select(source, root, skip)
    finally:
        os.close(root)


def _select(source: Path, root: int, skip: frozenset[Path]) -> Selection:
    chosen = Selection()
    excludes, outermost = _rules_around(source)
    in_git = outermost is not None
    waiting = [("", False, outermost)]
    while waiting:
        here, in_ignored, rules = waiting.pop()
        entries = _entries(root, here)
        if entries is None:
            chosen.left_out.append(f"{here}/")
            continue
        names = {name for name, _ in entries}
        if here and ".git" in names and not in_ignored and (inner := repository_at(source / here)):
            rules = IgnoreRules.of(inner, excludes or user_excludes())
        if here and rules is not None and IGNORE_FILE in names:
            rules = rules.with_own_file()
        for name, found in entries:
            path = f"{here}/{name}" if here else name
            is_directory = stat.S_ISDIR(found.st_mode)
            if name == ".git":
                _add_repository(source, here, chosen)
            elif source / path in skip:
                continue
            elif is_directory:
                ignored = rules is not None and rules.ignores(name, is_directory=True)
                heavy = ignored if in_git else name in _HEAVY
                if not (heavy and not in_ignored and _set_aside(root, path, chosen)):
                    chosen.directories[path] = found
                    below = None if ignored or rules is None else rules.inside(name)
                    waiting.append((path, in_ignored or ignored, below))
            elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                ignored = in_ignored or (rules is not None and rules.ignores(name, is_directory=False))
                _add_file(path, found, ignored, chosen)
    return chosen


def _rules_around(source: Path) -> tuple[Path | None, IgnoreRules | None]:
    """Return the user's own ignore file and the rules at ``source``, None if no repository has it."""
    repository = repository_around(source)
    if repository is None:
        return None, None
    excludes = user_excludes()
    return excludes, rules_for(source, repository, excludes)


def _add_repository(source: Path, here: str, chosen: Selection) -> None:
    """Note a ``.git``; one below the source is left out if it leads to a repository elsewhere that does not know it."""
    git_dir = source / here / ".git"
    repository = repository_at(source / here)
    if repository and (not here or repository.is_within(source) or repository.knows_worktree()):
        chosen.repositories.append(here)
    elif repository is None and is_empty_directory(git_dir):
        pass  # git takes it for nothing; a sandbox that was killed as it worked in place leaves one
    elif here:
        chosen.left_out.append(f"{here}/.git")
    else:
        raise WorkspaceError(f"{git_dir} cannot be read as a repository; mend it, or move it away to work without git")


def _entries(root: int, path: str) -> list[tuple[str, os.stat_result]] | None:
    """The names in a directory and what they are; None for one that cannot be read or became a link."""
    try:
        descriptor = open_beneath(root, path, DIRECTORY) if path else os.open(".", DIRECTORY, dir_fd=root)
    except OSError:
        return None
    try:
        return entries_of(descriptor)
    except OSError:
        return None  # its mode lets it be listed, but nothing in it be looked at
    finally:
        os.close(descriptor)


def _set_aside(root: int, path: str, chosen: Selection) -> bool:
    """Mount a big ignored directory, or leave it out if a secret is in it; False for a small one."""
    size, secret = _measure(root, path)
    if size <= BIG:
        return False
    if secret:
        chosen.left_out.append(f"{path}/")
    else:
        chosen.mounts.append(path)
    return True


def _measure(root: int, path: str) -> tuple[int, bool]:
    """Bytes in a directory and whether a secret is."""
    size, secret, waiting = 0, False, [path]
    while waiting:
        here = waiting.pop()
        trusted = _in_packages(here)
        for name, found in _entries(root, here) or ():
            if stat.S_ISDIR(found.st_mode):
                waiting.append(f"{here}/{name}")
                continue
            secret = secret or (not trusted and _SECRET.fullmatch(name) is not None)
            size += found.st_size
        if size > BIG and (secret or trusted):
            break  # of installed packages there can be a hundred thousand files
    return size, secret


def _in_packages(path: str) -> bool:
    return not _PACKAGES.isdisjoint(path.split("/"))


def _add_file(path: str, found: os.stat_result, ignored: bool, chosen: Selection) -> None:
    if ignored and (found.st_size > BIG or (_is_secret(path) and not _in_packages(path))):
        chosen.left_out.append(path)
    else:
        chosen.files[path] = found


def _is_secret(path: str) -> bool:
    return _SECRET.fullmatch(path.rpartition("/")[2]) is not None
