"""Apply a session's changes to the user's directory: a three-way merge, all or nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply.alike_names import ExactNames, folded, in_present_folders, left_out
from handiwork.workspace.apply.journal import ApplyJournal
from handiwork.workspace.apply.replacement import Content, Replacement, Version, replace_files, version_of
from handiwork.workspace.apply.undo import KeptState, kept_for_undo, states_left
from handiwork.workspace.changes import Change, Side, same_content, side_at
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.safe_open import is_git_name, look, parts_of, walk
from handiwork.workspace.git.bare import git_dirs_after, git_dirs_of
from handiwork.workspace.git.command import merge_texts

Resolution = Literal["take", "leave"]
"""The answer to a conflict: take the session's version of the file, or leave the user's as it is."""


@dataclass(frozen=True)
class Conflict:
    """A path that the session (``theirs``) and the user (``mine``) changed differently.

    The session's version cannot be taken (``can_take``) if its place has a directory, or its parent is not one.
    """

    path: str
    reason: str
    mine: Side | None
    theirs: Side | None
    can_take: bool

    @property
    def change(self) -> Change:
        """Return the change that taking the session's version would make."""
        if self.mine is None or self.theirs is None:
            return Change(self.path, "added" if self.theirs else "deleted", self.mine, self.theirs)
        kind = "modified" if self.mine.is_link == self.theirs.is_link else "type"
        return Change(self.path, kind, self.mine, self.theirs)


class ConflictError(WorkspaceError):
    """The session's changes conflict with the user's own; ``conflicts`` has (path, reason) pairs."""

    def __init__(self, conflicts: Sequence[tuple[str, str]], result: str = "nothing was applied") -> None:
        self.conflicts = tuple(conflicts)
        listed = "".join(f"\n  {quoted(path)}: {reason}" for path, reason in conflicts)
        number = "1 conflict" if len(conflicts) == 1 else f"{len(conflicts)} conflicts"
        super().__init__(f"{result}, because of {number}:{listed}")


@dataclass(frozen=True)
class Applied:
    """The result of ``apply``: paths, and in ``warnings`` a sentence for each change it skipped."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: tuple[str, ...]
    warnings: tuple[str, ...]


def preview(
    changes: Sequence[Change],
    target: Path,
    undo_dir: Path | None = None,
    *,
    began: Mapping[str, KeptState] | None = None,
) -> tuple[Applied, tuple[Conflict, ...]]:
    """Return the changes that ``apply`` would make, and the conflicts that would prevent it; writes nothing."""
    plan = _plan(changes, target.resolve(), {}, undo_dir, began or {})
    return plan.result(), tuple(plan.conflicts)


def apply(
    changes: Sequence[Change],
    target: Path,
    resolutions: Mapping[str, Resolution] | None = None,
    *,
    undo_dir: Path | None = None,
    began: Mapping[str, KeptState] | None = None,
) -> Applied:
    """Apply the changes to ``target``, merging text with the user's edits since the copy.

    Undoes an interrupted earlier apply first and adds a warning about it. Skips a new symbolic link out of the
    workspace, with a warning. ``resolutions`` has the answer to a conflict by path, as ``quoted`` writes it.
    ``undo_dir`` keeps the data for ``undo``. A file that is unchanged since an earlier apply kept there counts as not
    edited, unless that apply merged edits into it, and neither does one in the state in which a fork ``began``. Raises
    ConflictError on any other conflict, and WorkspaceError if a file cannot be written or changes in the meantime;
    ``target`` is then unchanged.
    """
    target = target.resolve()
    with ApplyJournal(target) as journal:
        plan = _plan(changes, target, resolutions or {}, undo_dir, began or {})
        if plan.conflicts:
            raise ConflictError([(conflict.path, conflict.reason) for conflict in plan.conflicts])
        if journal.recovered:
            plan.warnings.insert(0, f"{journal.recovered}.")
        if undo_dir is None or not plan.replacements:
            replace_files(journal, plan.replacements, seen=plan.seen)
        else:
            with kept_for_undo(undo_dir, target, plan.replacements) as journal.kept:
                replace_files(journal, plan.replacements, seen=plan.seen)
    return plan.result()


def _plan(
    changes: Sequence[Change],
    target: Path,
    resolutions: Mapping[str, Resolution],
    undo_dir: Path | None,
    began: Mapping[str, KeptState],
) -> _Plan:
    left = {**began, **(states_left(undo_dir) if undo_dir else {})}
    changes, warnings = in_present_folders(changes, target)
    names = ExactNames(target, (change.path for change in changes))
    plan = _Plan(names, git_dirs_after(changes, target), resolutions, left)
    plan.warnings += warnings
    deleted = {change.path for change in changes if change.new is None}
    added = {change.path for change in changes if change.new}
    for change in changes:
        plan.add(change, deleted, added)
    plan.leave_out_taken_names()
    return plan


class _Plan:
    """The replacement for each change, and the conflicts and warnings."""

    def __init__(
        self,
        names: ExactNames,
        git_dirs: Collection[str],
        resolutions: Mapping[str, Resolution],
        left: Mapping[str, KeptState],
    ) -> None:
        self.names = names
        self.target = names.root
        self.device = self.target.stat().st_dev
        self.git_dirs = git_dirs
        self.resolutions = resolutions
        self.left = left
        self.seen: dict[str, Version | None] = {}
        self.replacements: list[Replacement] = []
        self.unchanged: list[str] = []
        self.warnings: list[str] = []
        self.conflicts: list[Conflict] = []

    def result(self) -> Applied:
        return Applied(
            written=tuple(step.path for step in self.replacements if step.new),
            deleted=tuple(step.path for step in self.replacements if not step.new),
            unchanged=tuple(self.unchanged),
            warnings=tuple(self.warnings),
        )

    def add(self, change: Change, deleted: set[str], added: set[str]) -> None:
        path, base, theirs = change.path, change.old, change.new
        if any(map(is_git_name, parts_of(path))):
            self.warnings.append(f"{quoted(path)} was left out: it belongs to a repository's own files.")
        elif any(directory.lower() in self.git_dirs for directory in git_dirs_of(path)):
            self.warnings.append(f"{quoted(path)} was left out: git would take its directory for a repository.")
        elif theirs and theirs.is_link and _leads_out(path, os.fsdecode(theirs.read())):
            link = os.fsdecode(theirs.read())
            self.warnings.append(
                f"{quoted(path)} was left out: it is a symbolic link out of the workspace, to {quoted(link)}."
            )
        elif theirs is None and self.type_changed(path, added):
            self.unchanged.append(path)
        elif reason := self.obstacle(path, theirs, deleted):
            self.conflict(path, reason, None, theirs, can_take=False)
        else:
            self.seen[path] = version_of(self.names.look(path))  # before its content is read
            mine = self.names.side_at(path)
            as_left = path in self.left and KeptState.of(mine) == self.left[path]
            self.decide(path, mine if as_left else base, mine, theirs)

    def leave_out_taken_names(self) -> None:
        """Leave out each new file that would replace one of another name, unless that one is deleted."""
        deleted = {folded(step.path) for step in self.replacements if step.new is None}
        undecided = {folded(conflict.path) for conflict in self.conflicts}
        for step in tuple(self.replacements):
            if step.new and self.names.is_taken(step.path) and folded(step.path) not in deleted | undecided:
                self.replacements.remove(step)
                self.warnings.append(left_out(step.path))

    def decide(self, path: str, base: Side | None, mine: Side | None, theirs: Side | None) -> None:
        """Choose the side that changed; merge the text if both did."""
        if _is_same(mine, theirs):
            self.unchanged.append(path)
        elif theirs is None and _is_same(mine, base):
            self.replacements.append(Replacement(path, None))
        elif theirs is None:
            self.conflict(path, "deleted by the session, but edited here", mine, theirs)
        elif mine is None and base is not None:
            self.conflict(path, "changed by the session, but deleted here", mine, theirs)
        elif mine is None or _is_same(mine, base):
            self.replacements.append(Replacement(path, _content(theirs, theirs, mine)))
        elif base is None and not same_content(mine, theirs):
            self.conflict(path, "added by the session and here, with different contents", mine, theirs)
        elif len({side.is_link for side in (base, mine, theirs) if side}) > 1:
            self.conflict(path, "its type was changed", mine, theirs)
        else:
            self.merge(path, base, mine, theirs)

    def conflict(
        self, path: str, reason: str, mine: Side | None, theirs: Side | None, *, can_take: bool = True
    ) -> None:
        resolution = self.resolutions.get(quoted(path))
        if resolution == "leave":
            self.warnings.append(f"{quoted(path)} was left as it is: {reason}.")
        elif resolution == "take" and can_take:
            self.replacements.append(Replacement(path, _content(theirs, theirs, mine) if theirs else None))
        else:
            self.conflicts.append(Conflict(path, reason, mine, theirs, can_take))

    def merge(self, path: str, base: Side | None, mine: Side, theirs: Side) -> None:
        executable = theirs if base is None or base.git_mode == mine.git_mode else mine
        if same_content(mine, theirs) or same_content(base, theirs):
            self.replace_merged(path, mine, executable, mine)
        elif same_content(base, mine):
            self.replacements.append(Replacement(path, _content(theirs, executable, mine)))
        elif base is None or theirs.is_link:
            self.conflict(path, "the link was changed by the session and here", mine, theirs)
        elif not all(side.has_lines for side in (base, mine, theirs)):
            self.conflict(path, "changed by the session and here, and not a text that could be merged", mine, theirs)
        elif (merged := self.merge_text(base, mine, theirs)) is None:
            self.conflict(path, "the same lines were changed by the session and here", mine, theirs)
        else:
            self.replace_merged(path, merged, executable, mine)

    def replace_merged(self, path: str, merged: Side, executable: Side, mine: Side) -> None:
        if executable.git_mode == mine.git_mode and merged.read() == mine.read():
            self.unchanged.append(path)
        else:
            self.replacements.append(Replacement(path, _content(merged, executable, mine), has_edits=True))

    def merge_text(self, base: Side, mine: Side, theirs: Side) -> Side | None:
        """Return the merged file; None if the edits overlap."""
        answer = merge_texts(mine.read(), base.read(), theirs.read())
        if answer.returncode > 127:
            raise WorkspaceError(f"git cannot merge {quoted(mine.path)}: {answer.stderr.decode(errors='replace')}")
        return None if answer.returncode else replace(mine, size=len(answer.stdout), content=answer.stdout)

    def type_changed(self, path: str, added: set[str]) -> bool:
        """Return whether the session's own directory or file has already replaced a deleted file in the target."""
        status = look(self.target, path)
        if status and stat.S_ISDIR(status.st_mode):
            return any(name.startswith(f"{path}/") for name in added)
        parents = ("/".join(parts_of(path)[:depth]) for depth in range(1, len(parts_of(path))))
        parent_statuses = (look(self.target, parent) for parent in parents if parent in added)
        return any(parent_status and not stat.S_ISDIR(parent_status.st_mode) for parent_status in parent_statuses)

    def obstacle(self, path: str, theirs: Side | None, deleted: set[str]) -> str:
        """Return why ``path`` cannot be written with any content; "" if it can."""
        parts = parts_of(path)
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            status = look(self.target, parent)
            is_mount = status and stat.S_ISDIR(status.st_mode) and status.st_dev != self.device
            if is_mount and not _is_same(side_at(self.target, path), theirs):
                return f"{quoted(parent)} is on another file system here"
            if status and not stat.S_ISDIR(status.st_mode) and parent not in deleted:
                kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a directory"
                return f"{quoted(parent)} is {kind} here"
        status = look(self.target, path)
        if status is None or stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            return ""
        if not stat.S_ISDIR(status.st_mode):
            return "it is a device, a pipe or a socket here"
        if not theirs:
            return "deleted by the session, but a directory here"
        for below, below_status in walk(self.target, path):
            if not stat.S_ISDIR(below_status.st_mode) and below not in deleted:
                return f"a directory is here, with {quoted(below)} in it"
        return ""


def _is_same(one: Side | None, other: Side | None) -> bool:
    return same_content(one, other) and (one is None or other is None or one.git_mode == other.git_mode)


def _leads_out(path: str, link: str) -> bool:
    """Return whether a link may lead out of the workspace; ".." after a name may do so through another link."""
    parts = [part for part in link.split("/") if part not in ("", ".")]
    ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return link.startswith("/") or ".." in parts[ups:] or ups > path.count("/")


def _content(source: Side, executable: Side, mine: Side | None) -> Content:
    """Return the bytes of ``source`` with the file's own mode and the executable bits of ``executable``."""
    if source.is_link:
        return Content(source, 0o777)
    # A new file gets the mode from the sandbox; a link's mode is never used for a file.
    mode = (mine if mine and not mine.is_link else source).mode & 0o777
    is_executable = executable.git_mode == "100755"
    return Content(source, mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111)
