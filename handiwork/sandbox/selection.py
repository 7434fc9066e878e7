"""Choosing what of the user's directory goes into a workspace's copy."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.sandbox.git import run_git

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

    Raises WorkspaceError when git is not installed.
    """
    chosen = Selection()
    ignored = _ignored_by_git(source, "")
    in_git = ignored is not None
    waiting = [("", False, ignored or frozenset[str]())]
    while waiting:
        here, in_ignored, ignored = waiting.pop()
        if here and os.path.lexists(source / here / ".git") and not in_ignored:
            ignored = ignored | (_ignored_by_git(source, here) or frozenset())
        for entry, found in _entries(source, here, chosen):
            path = f"{here}/{entry.name}" if here else entry.name
            if entry.name == ".git":
                chosen.repositories.append(here)
            elif source / path in skip:
                continue
            elif stat.S_ISDIR(found.st_mode):
                is_ignored = in_ignored or path in ignored
                heavy = path in ignored if in_git else entry.name in _HEAVY
                if not (heavy and not in_ignored and _set_aside(source, path, chosen)):
                    chosen.directories[path] = found
                    waiting.append((path, is_ignored, ignored))
            elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                _add_file(path, found, in_ignored or path in ignored, chosen)
    return chosen


def _ignored_by_git(source: Path, directory: str) -> frozenset[str] | None:
    """The topmost paths below that git ignores, relative to the source; None outside of any repository."""
    cwd = source / directory
    if run_git(cwd, "check-ignore", "-q", ".").returncode == 0:
        return None  # the whole of it is ignored by a repository further up
    listing = run_git(cwd, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    if listing.returncode:
        return None
    prefix = f"{directory}/" if directory else ""
    return frozenset(prefix + os.fsdecode(path).rstrip("/") for path in listing.stdout.split(b"\0") if path)


def _entries(source: Path, here: str, chosen: Selection) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    try:
        with os.scandir(source / here) as listing:
            entries = list(listing)
    except OSError:
        chosen.left_out.append(f"{here}/")
        return
    for entry in entries:
        with suppress(FileNotFoundError):
            yield entry, entry.stat(follow_symlinks=False)


def _set_aside(source: Path, path: str, chosen: Selection) -> bool:
    """Mount a big ignored directory, or leave it out if a secret is in it; False for a small one."""
    size, secret = _measure(source, path)
    if size <= BIG:
        return False
    if secret:
        chosen.left_out.append(f"{path}/")
    else:
        chosen.mounts.append(path)
    return True


def _measure(source: Path, path: str) -> tuple[int, bool]:
    """Bytes in a directory and whether a secret is."""
    size, secret = 0, False
    for here, _, names in os.walk(source / path):
        trusted = _in_packages(os.path.relpath(here, source))
        for name in names:
            secret = secret or (not trusted and _SECRET.fullmatch(name) is not None)
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(here, name)).st_size
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
