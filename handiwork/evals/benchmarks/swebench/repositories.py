"""Checkouts of base commits without any history: one root commit, and no object that it does not reach."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

from handiwork.evals.benchmark import DataError
from handiwork.paths import cache_dir, locked

_IDENTITY = {
    **{f"GIT_{role}_NAME": "developer" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "developer@localhost" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "2000-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")},
}


def source_of(data: Path, repository: str) -> Path | None:
    """Return the bundle or the bare clone of a repository ("owner/name") in a data folder, None without one."""
    base = data / "repos" / repository.replace("/", "__")
    candidates = (base.with_name(f"{base.name}{suffix}") for suffix in (".bundle", ".git"))
    return next((path for path in candidates if path.exists()), None)


def tree_of(source: Path, commits: tuple[str, ...]) -> str:
    """Return the id of the tree of the first of these branches or commits that the source has. Raises DataError."""
    clone = _clone(source)
    for commit in commits:
        done = _git(clone, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}", check=False)
        if done:
            return done
    raise DataError(f"{source} has neither of {', '.join(commits)}: get the repository again")


def check_out(source: Path, tree: str, folder: Path) -> None:
    """Fill an empty folder with a repository whose one commit has the tree. Raises DataError."""
    start_history(folder, _clone(source), tree, "--hard")


def start_history(folder: Path, clone: Path, tree: str, reset: Literal["--hard", "--mixed"]) -> None:
    """Make a folder a repository whose one commit has a tree of the bare ``clone``; --mixed leaves its files alone.

    The configuration of the clone has uploadpack.allowAnySHA1InWant. Raises DataError.
    """
    commit = _git(clone, "commit-tree", tree, "-m", "Initial commit")
    _git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    # A fetch transfers what the commit reaches; a clone of the source would have the trees of later commits too.
    _git(folder, "fetch", "--quiet", "--no-tags", f"file://{clone}", commit)
    _git(folder, "reset", "--quiet", reset, commit)
    # Otherwise the global ignore file of this machine's user would decide what is in the agent's patch.
    _git(folder, "config", "core.excludesFile", "")
    # It names the source.
    (folder / ".git/FETCH_HEAD").unlink()
    shutil.rmtree(folder / ".git/logs", ignore_errors=True)
    (folder / ".git/info").mkdir(exist_ok=True)


def _clone(source: Path) -> Path:
    """Return a bare clone of the source in the cache, made again if the source has changed."""
    status = source.stat()
    version = f"{source.absolute()} {status.st_size} {status.st_mtime_ns}"
    clone = cache_dir() / "repositories" / hashlib.sha256(version.encode()).hexdigest()[:20]
    if clone.is_dir():
        return clone
    clone.parent.mkdir(parents=True, exist_ok=True)
    with locked(clone.with_name(f"{clone.name}.lock"), flags=os.O_RDWR | os.O_CREAT):
        if not clone.is_dir():
            part = clone.with_name(f"{clone.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            _git(clone.parent, "clone", "--quiet", "--bare", str(source), str(part))
            _git(part, "config", "uploadpack.allowAnySHA1InWant", "true")
            part.rename(clone)
    return clone


def _git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git on repositories that no agent has seen, without the user's settings, and return its output."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C", **_IDENTITY}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
    trusted = ("-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null")
    try:
        done = subprocess.run(
            ["git", *trusted, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            umask=0o022,
        )
    except FileNotFoundError as error:
        raise DataError("git is not installed; install it and try again") from error
    if done.returncode and check:
        raise DataError(f"git {arguments[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()
