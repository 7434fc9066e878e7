"""Bringing a session's changes into the user's directory: three-way, all or nothing."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from handiwork.sandbox.changes import Change, Side, same_content, side_at
from handiwork.sandbox.git import run_git_alone
from handiwork.sandbox.replace import Content, Replacement, replace_files
from handiwork.sandbox.safe_open import WorkspaceError, is_git_name, look, parts_of, walk


class ConflictError(WorkspaceError):
    """Changes that do not go together with the user's own: ``conflicts`` has (path, reason) pairs."""

    def __init__(self, conflicts: Sequence[tuple[str, str]]) -> None:
        self.conflicts = tuple(conflicts)
        listed = "".join(f"\n  {path}: {reason}" for path, reason in conflicts)
        super().__init__(f"nothing was applied, because of {len(conflicts)} conflicts:{listed}")


@dataclass(frozen=True)
class Applied:
    """What ``apply`` did, as paths; each of ``warnings`` is a sentence about a change that was not made."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: tuple[str, ...]
    warnings: tuple[str, ...]


def apply(changes: Sequence[Change], target: Path, *, dry_run: bool = False) -> Applied:
    """Make the changes in ``target``, merging text with what the user edited since the copy was made.

    A new symbolic link that leaves the workspace is not made but warned about. With ``dry_run`` nothing is
    written. Raises ConflictError, and WorkspaceError for what cannot be written; then nothing has changed.
    """
    target = target.resolve()
    with tempfile.TemporaryDirectory(prefix="handiwork-merge-") as private:
        plan = _Plan(target, Path(private))
        gone = {change.path for change in changes if change.new is None}
        for change in changes:
            plan.add(change, gone)
        if plan.conflicts:
            raise ConflictError(plan.conflicts)
        if not dry_run:
            replace_files(target, plan.replacements)
    return Applied(
        written=tuple(step.path for step in plan.replacements if step.new),
        deleted=tuple(step.path for step in plan.replacements if not step.new),
        unchanged=tuple(plan.unchanged),
        warnings=tuple(plan.warnings),
    )


class _Plan:
    """What to write for each change, and what speaks against it."""

    def __init__(self, target: Path, private: Path) -> None:
        self.target = target
        self.private = private
        self.replacements: list[Replacement] = []
        self.unchanged: list[str] = []
        self.warnings: list[str] = []
        self.conflicts: list[tuple[str, str]] = []

    def add(self, change: Change, gone: set[str]) -> None:
        path, base, theirs = change.path, change.old, change.new
        if any(map(is_git_name, parts_of(path))):
            self.warnings.append(f"{path} was left out: it belongs to a repository's own files.")
        elif theirs and theirs.is_link and _leaves(path, os.fsdecode(theirs.read())):
            link = os.fsdecode(theirs.read())
            self.warnings.append(f"{path} was left out: it is a symbolic link out of the workspace, to {link}.")
        elif reason := self.obstacle(path, theirs, gone):
            self.conflicts.append((path, reason))
        else:
            self.decide(path, base, side_at(self.target, path), theirs)

    def decide(self, path: str, base: Side | None, mine: Side | None, theirs: Side | None) -> None:
        """Three-way: whoever did not change it gives way; both changed it, then text is merged."""
        if _same(mine, theirs):
            self.unchanged.append(path)
        elif theirs is None and _same(mine, base):
            self.replacements.append(Replacement(path, None))
        elif theirs is None:
            self.conflicts.append((path, "deleted by the session, but edited here"))
        elif mine is None and base is not None:
            self.conflicts.append((path, "changed by the session, but deleted here"))
        elif mine is None or _same(mine, base):
            self.replacements.append(Replacement(path, _content(theirs, theirs, mine)))
        elif base is None and not same_content(mine, theirs):
            self.conflicts.append((path, "added by the session and here, with different contents"))
        elif len({side.is_link for side in (base, mine, theirs) if side}) > 1:
            self.conflicts.append((path, "its type was changed"))
        else:
            self.merge(path, base, mine, theirs)

    def merge(self, path: str, base: Side | None, mine: Side, theirs: Side) -> None:
        executable = theirs if base is None or base.git_mode == mine.git_mode else mine
        if same_content(mine, theirs) or same_content(base, theirs):
            self.replacements.append(Replacement(path, _content(mine, executable, mine)))
        elif same_content(base, mine):
            self.replacements.append(Replacement(path, _content(theirs, executable, mine)))
        elif base is None or theirs.is_link:
            self.conflicts.append((path, "the link was changed by the session and here"))
        elif any(side.binary for side in (base, mine, theirs)):
            self.conflicts.append((path, "changed by the session and here, and not a text that could be merged"))
        elif (merged := self.merge_text(base, mine, theirs)) is None:
            self.conflicts.append((path, "the same lines were changed by the session and here"))
        else:
            self.replacements.append(Replacement(path, _content(merged, executable, mine)))

    def merge_text(self, base: Side, mine: Side, theirs: Side) -> Side | None:
        """The merged file, in the private directory; None if the edits overlap."""
        number = len(self.replacements)
        names = [f"{number}.{side}" for side in ("mine", "base", "theirs")]
        for name, side in zip(names, (mine, base, theirs), strict=True):
            (self.private / name).write_bytes(side.read())
        answer = run_git_alone(self.private, "merge-file", "--quiet", *names)
        if answer.returncode > 127:
            raise WorkspaceError(f"git cannot merge {mine.path}: {answer.stderr.decode(errors='replace')}")
        return None if answer.returncode else side_at(self.private, names[0])

    def obstacle(self, path: str, theirs: Side | None, gone: set[str]) -> str:
        """Why nothing can be written at ``path``, whatever it holds; "" if something can."""
        parts = parts_of(path)
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            found = look(self.target, parent)
            if found and not stat.S_ISDIR(found.st_mode) and parent not in gone:
                kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a directory"
                return f"{parent} is {kind} here"
        found = look(self.target, path)
        if found is None or stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            return ""
        if not stat.S_ISDIR(found.st_mode):
            return "it is a device, a pipe or a socket here"
        if not theirs:
            return "deleted by the session, but a directory here"
        for below, status in walk(self.target, path):
            if not stat.S_ISDIR(status.st_mode) and below not in gone:
                return f"a directory is here, with {below} in it"
        return ""


def _same(one: Side | None, other: Side | None) -> bool:
    return same_content(one, other) and (one is None or other is None or one.git_mode == other.git_mode)


def _leaves(path: str, link: str) -> bool:
    """Whether a link could lead out of the workspace; ".." after a name could, through another link."""
    parts = [part for part in link.split("/") if part not in ("", ".")]
    ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return link.startswith("/") or ".." in parts[ups:] or ups > path.count("/")


def _content(source: Side, executable: Side, mine: Side | None) -> Content:
    """What to write: the bytes of ``source``, and a file's own mode with ``executable``'s right to execute."""
    if source.is_link:
        return Content(source, 0o777)
    # Of a new file the sandbox's mode counts, of a changed type nothing that was a link's.
    own = (mine if mine and not mine.is_link else source).mode & 0o777
    runs = executable.git_mode == "100755"
    return Content(source, own | (own & 0o444) >> 2 if runs else own & ~0o111)
