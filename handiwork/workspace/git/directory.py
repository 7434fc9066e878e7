"""Copies of a repository's ``.git`` without credentials, hooks or references to the original."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.files.safe_open import entries_of, join, open_folder, open_resolved
from handiwork.workspace.git.command import run_git
from handiwork.workspace.git.config import Setting, format_config
from handiwork.workspace.git.repository import Repository

_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf"
    r"|quotepath|sparsecheckout|sparsecheckoutcone|bare|logallrefupdates)"
    r"|extensions\.(objectformat|noop|compatobjectformat|refstorage)|user\.(name|email)"
    r"|remote\..*\.(url|pushurl|fetch|tagopt)"
    r"|branch\..*\.(remote|merge|rebase)|submodule\..*\.(url|active|branch)",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that are kept; any other may be a secret, a path on the host or a program."""

_PARTIAL = re.compile(r"extensions\.partialclone|remote\..*\.(promisor|partialclonefilter)", re.IGNORECASE | re.DOTALL)
"""Settings by which git fetches objects from a host on demand, allowed only in a sandbox."""

CopyFile = Callable[[int, str, Path], None]
"""Called with an open directory, the name of a regular file in it, and the path of its copy."""

_DROPPED = frozenset({"config", "config.worktree", "hooks", "worktrees", "modules", "commondir", "gitdir"})
_OF_ONE_WORKTREE = re.compile(r"[A-Z_]+|index|rebase-(merge|apply)|sequencer")
"""Names of the main worktree's own files, such as its HEAD and an unfinished merge, which others do not share."""
_HTTP_USER = re.compile(r"^(https?|ftps?)://[^/]*@", re.IGNORECASE)
_PASSWORD = re.compile(r"^([a-z0-9+.-]+://[^/@:]*):[^/]*@", re.IGNORECASE)


def copy_git_dir(repository: Repository, copy: Path, copy_file: CopyFile) -> None:
    """Create ``copy``/.git from a repository, including that of a linked worktree or a submodule.

    Raises WorkspaceError if the repository cannot be read.
    """
    new = copy / ".git"
    is_linked = repository.git_dir != repository.common
    _copy_tree(repository.common, new, copy_file, shared_only=is_linked)
    if is_linked:
        _copy_tree(repository.git_dir, new, copy_file)
    settings = [
        (name, value and _strip_password(value))
        for name, value in repository.read_settings()
        if _is_allowed(name, value)
    ]
    fixed = [("core.bare", "false"), ("core.logallrefupdates", "true")]
    (new / "config").write_bytes(format_config([*settings, *fixed]))
    _join_alternates(repository.common / "objects", new)


def harmless_settings(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings that make git neither run a program, nor access files elsewhere, nor contact a host."""
    return [(name, value) for name, value in settings if _HARMLESS.fullmatch(name)]


def _is_allowed(name: str, value: str | None) -> bool:
    if name == "core.excludesfile":  # in the worktree, or "" for none at all, which overrides the user's own
        return value is not None and not value.startswith(("/", "~"))
    return bool(_HARMLESS.fullmatch(name) or _PARTIAL.fullmatch(name)) and name != "core.bare"


def _copy_tree(source: Path, target: Path, copy_file: CopyFile, *, shared_only: bool = False) -> None:
    """Copy the files below ``source``, except links, sockets, locks and files that name a password or a host.

    With ``shared_only`` those of the main worktree alone are left out.
    """
    root, pending = open_resolved(source), [""]
    try:
        while pending:
            folder = pending.pop()
            (target / folder).mkdir(parents=True, exist_ok=True)
            directory = open_folder(root, folder)
            try:
                for name, status in entries_of(directory):
                    if not folder and name in _DROPPED | {"FETCH_HEAD"}:
                        continue
                    if not folder and shared_only and _OF_ONE_WORKTREE.fullmatch(name):
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(join(folder, name))
                    elif stat.S_ISREG(status.st_mode) and not name.endswith(".lock"):
                        (target / folder / name).unlink(missing_ok=True)
                        copy_file(directory, name, target / folder / name)
            finally:
                os.close(directory)
    finally:
        os.close(root)


def _strip_password(url: str) -> str:
    return _PASSWORD.sub(r"\1@", _HTTP_USER.sub(r"\1://", url))


def _join_alternates(original: Path, copy: Path) -> None:
    """Copy the objects that the original borrows from other repositories, invisible to the sandbox."""
    alternates = copy / "objects/info/alternates"
    if not alternates.exists():
        return
    lines = [line for line in alternates.read_text().splitlines() if line and not line.startswith("#")]
    alternates.write_text("".join(f"{original / line}\n" for line in lines))
    result = run_git(copy, "repack", "-a", "-d", "-q")
    if result.returncode:
        raise WorkspaceError(
            f"objects borrowed from {', '.join(lines)} cannot be copied:"
            f" {result.stderr.decode(errors='replace').strip()}"
        )
    alternates.unlink()
