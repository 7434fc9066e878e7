"""A copy of a repository's ``.git`` that holds no credentials, no hooks and no way back to the original."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from handiwork.sandbox.git import run_git
from handiwork.sandbox.safe_open import WorkspaceError

_KEPT = re.compile(
    r"core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf"
    r"|quotepath|sparsecheckout|sparsecheckoutcone)"
    r"|extensions\.(objectformat|partialclone|noop|compatobjectformat|refstorage)|user\.(name|email)"
    r"|remote\..*\.(url|pushurl|fetch|promisor|partialclonefilter|tagopt)"
    r"|branch\..*\.(remote|merge|rebase)|submodule\..*\.(url|active|branch)",
    re.IGNORECASE | re.DOTALL,
)
"""The settings that go along; whatever else there is may be a secret, a path of the host or a program."""

_DROPPED = frozenset({"config", "config.worktree", "hooks", "worktrees", "modules", "commondir", "gitdir"})
_HTTP_USER = re.compile(r"^(https?|ftps?)://[^/]*@", re.IGNORECASE)
_PASSWORD = re.compile(r"^([a-z0-9+.-]+://[^/@:]*):[^/]*@", re.IGNORECASE)


def copy_git_dir(worktree: Path, copy: Path, copy_file: Callable[[Path, Path], None]) -> None:
    """Make ``copy``/.git from the repository of ``worktree``, also when that is a linked one or a submodule.

    Raises WorkspaceError when git cannot read it.
    """
    git_dir, common = (_ask(worktree, option) for option in ("--git-dir", "--git-common-dir"))
    new = copy / ".git"
    _copy_tree(common, new, copy_file)
    if git_dir != common:
        _copy_tree(git_dir, new, copy_file)
    _write_config([common / "config", git_dir / "config.worktree"], new / "config")
    _join_alternates(common / "objects", new)


def _ask(worktree: Path, option: str) -> Path:
    answer = run_git(worktree, "rev-parse", option)
    if answer.returncode:
        raise WorkspaceError(
            f"{worktree / '.git'} cannot be read by git ({answer.stderr.decode(errors='replace').strip()});"
            " mend it, or move it away to work without git"
        )
    return (worktree / os.fsdecode(answer.stdout.removesuffix(b"\n"))).resolve()


def _copy_tree(source: Path, target: Path, copy_file: Callable[[Path, Path], None]) -> None:
    """Copy the files below ``source``; links, sockets, locks and what names a password or a host are not."""
    for here, directories, names in os.walk(source):
        if Path(here) == source:
            directories[:] = [name for name in directories if name not in _DROPPED]
            names = [name for name in names if name not in _DROPPED | {"FETCH_HEAD"}]
        relative = os.path.relpath(here, source)
        (target / relative).mkdir(parents=True, exist_ok=True)
        for name in names:
            file = Path(here, name)
            if not name.endswith(".lock") and stat.S_ISREG(file.lstat().st_mode):
                (target / relative / name).unlink(missing_ok=True)
                copy_file(file, target / relative / name)


def _write_config(sources: Iterable[Path], target: Path) -> None:
    lines: list[str] = []
    for source in filter(Path.exists, sources):
        listing = run_git(target.parent.parent, "config", "--file", str(source), "--list", "-z").stdout
        for setting in os.fsdecode(listing).split("\0"):
            name, _, value = setting.partition("\n")
            if _KEPT.fullmatch(name):
                lines += _setting(name, _without_password(value))
    lines += _setting("core.bare", "false") + _setting("core.logallrefupdates", "true")
    target.write_bytes(os.fsencode("\n".join(lines) + "\n"))


def _setting(name: str, value: str) -> list[str]:
    section, _, key = name.rpartition(".")
    section, dot, subsection = section.partition(".")
    return [f"[{section} {_quoted(subsection)}]" if dot else f"[{section}]", f"\t{key} = {_quoted(value)}"]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _without_password(url: str) -> str:
    return _PASSWORD.sub(r"\1@", _HTTP_USER.sub(r"\1://", url))


def _join_alternates(original: Path, copy: Path) -> None:
    """Bring in the objects that the original borrows from other repositories, which the sandbox cannot see."""
    alternates = copy / "objects/info/alternates"
    if not alternates.exists():
        return
    lines = [line for line in alternates.read_text().splitlines() if line and not line.startswith("#")]
    alternates.write_text("".join(f"{original / line}\n" for line in lines))
    packed = run_git(copy.parent, "repack", "-a", "-d", "-q")
    if packed.returncode:
        raise WorkspaceError(
            f"objects borrowed from {', '.join(lines)} cannot be copied:"
            f" {packed.stderr.decode(errors='replace').strip()}"
        )
    alternates.unlink()
