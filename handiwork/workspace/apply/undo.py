"""Undo of an apply: the session's folder keeps the files that each apply replaced until it is undone.

A kept apply is a numbered folder with the files as they were before, and a record of each path's content before and
after. It is complete before the apply moves its first file. An apply that its journal has undone leaves a record that
the files contradict: they are all as before it, so the record is void.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply.alike_names import ExactNames
from handiwork.workspace.apply.journal import ApplyJournal, Attributes, parse_attributes, sync_file_system
from handiwork.workspace.apply.replacement import (
    Content,
    Replacement,
    not_written,
    removable,
    replace_files,
    version_of,
)
from handiwork.workspace.changes import Change, Side, side_at
from handiwork.workspace.files.copy import copy_data
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.safe_open import DIRECTORY, look, parts_of

_RECORD = "record.json"


class NothingToUndoError(WorkspaceError):
    """The session has no apply that could be undone."""


class EditedSinceError(WorkspaceError):
    """Files have changed since the apply; ``paths`` lists them."""

    def __init__(self, target: Path, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        listed = "".join(f"\n  {quoted(path)}" for path in paths)
        super().__init__(f"nothing was undone, because files in {target} have changed since the apply:{listed}")


@dataclass(frozen=True)
class Undone:
    """The result of ``undo``: the paths that are as before the apply."""

    restored: tuple[str, ...]
    deleted: tuple[str, ...]


@dataclass(frozen=True)
class KeptState:
    """A path's content and git's mode; both are "" if there is no file."""

    sha256: str = ""
    mode: str = ""

    @classmethod
    def of(cls, side: Side | None) -> KeptState:
        """Return the state of a file, or of none."""
        return cls(side.sha256, side.git_mode) if side else cls()


@dataclass(frozen=True)
class _Step:
    """A path that an apply replaces; ``permissions`` are those of the file before, 0 without one.

    ``has_edits`` is True if ``after`` includes the user's edits.
    """

    path: str
    before: KeptState
    after: KeptState
    permissions: int
    has_edits: bool


@dataclass(frozen=True)
class _Kept:
    """A kept apply: ``made`` are the directories that it created, ``removed`` those it may have removed."""

    folder: Path
    steps: tuple[_Step, ...]
    made: tuple[str, ...]
    removed: dict[str, Attributes]

    def names_in(self, target: Path) -> ExactNames:
        """Return the names of the steps in the target."""
        return ExactNames(target, (step.path for step in self.steps))

    def replacements(self) -> list[Replacement]:
        """Return the replacements that restore the files before the apply."""
        restored: list[Replacement] = []
        for number, step in enumerate(self.steps):
            old = side_at(self.folder, f"old{number}") if step.before.mode else None
            if step.before.mode and (old is None or old.sha256 != step.before.sha256):
                raise WorkspaceError(f"nothing was undone: the kept version of {quoted(step.path)} is damaged")
            restored.append(Replacement(step.path, Content(old, step.permissions, exact=True) if old else None))
        return restored

    def save(self) -> None:
        """Write the record. Raises OSError."""
        steps = [asdict(step) for step in self.steps]
        # Under its final name only when it is whole, as everything that reads it begins with it.
        (self.folder / "partial").write_text(json.dumps({"steps": steps, "made": self.made, "removed": self.removed}))
        (self.folder / "partial").rename(self.folder / _RECORD)

    def with_modes_of(self, target: Path) -> _Kept:
        """Return the apply with the modes that its files have: some file systems give every file the same one."""
        names, steps = self.names_in(target), list[_Step]()
        for step in self.steps:
            side = names.side_at(step.path) if step.after.mode else None
            steps.append(replace(step, after=replace(step.after, mode=side.git_mode)) if side else step)
        return replace(self, steps=tuple(steps))

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)


@contextmanager
def kept_for_undo(undo_dir: Path, target: Path, replacements: Sequence[Replacement]) -> Generator[Path]:
    """Keep the files to be replaced below ``target`` in the folder; discard it if they fail. Raises WorkspaceError."""
    folder = undo_dir.absolute() / str(max(_numbers(undo_dir), default=0) + 1)
    try:
        try:
            _keep(folder, target, replacements)
        except OSError as error:
            raise not_written(folder, error) from error
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # The files are written: an apply whose modes cannot be recorded is complete too.
    with suppress(OSError, WorkspaceError):
        if (kept := _load(folder)) and (now := kept.with_modes_of(target)) != kept:
            now.save()


def undo(undo_dir: Path, target: Path) -> Undone:
    """Undo the newest kept apply in ``target``.

    Raises NothingToUndoError, EditedSinceError if a file is not as the apply left it, and WorkspaceError if one cannot
    be written; ``target`` is then unchanged.
    """
    target = target.resolve()
    with ApplyJournal(target) as journal:
        kept = _newest(undo_dir, target)
        if kept is None:
            raise NothingToUndoError("there is no apply to undo")
        names = kept.names_in(target)
        seen = {step.path: version_of(names.look(step.path)) for step in kept.steps}
        if edited := [step.path for step in kept.steps if KeptState.of(names.side_at(step.path)) != step.after]:
            raise EditedSinceError(target, edited)
        replacements = kept.replacements()
        replace_files(journal, replacements, prune=kept.made, attributes=kept.removed, seen=seen)
        kept.remove()
    return Undone(
        restored=tuple(each.path for each in replacements if each.new),
        deleted=tuple(each.path for each in replacements if not each.new),
    )


def undoable(undo_dir: Path, target: Path) -> list[str]:
    """Return the paths of the newest kept apply, which ``undo`` would restore or delete."""
    kept = _newest(undo_dir, target.resolve())
    return [step.path for step in kept.steps] if kept else []


def states_left(undo_dir: Path) -> dict[str, KeptState]:
    """Return the state in which the kept applies left each path, without those that include edits of the user's."""
    kept = (_load(undo_dir / str(number)) for number in sorted(_numbers(undo_dir)))
    newest = {step.path: step for each in kept if each for step in each.steps}
    return {path: step.after for path, step in newest.items() if not step.has_edits}


def reverted(undo_dir: Path, target: Path, base: Path, changes: Sequence[Change]) -> list[Change]:
    """Return the changes back to ``base`` of files that an apply changed, and the session restored since.

    They are not among the session's ``changes``. A file that the user has edited since the apply stays as it is.
    """
    changed = {change.path for change in changes}
    restored: list[Change] = []
    states = states_left(undo_dir)
    names = ExactNames(target, states)
    for path, left in states.items():
        mine, old = names.side_at(path), side_at(base, path)
        if path not in changed and KeptState.of(mine) == left != KeptState.of(old):
            restored.append(Change(path, "modified" if mine and old else "added" if old else "deleted", mine, old))
    return restored


def _keep(folder: Path, target: Path, replacements: Sequence[Replacement]) -> None:
    folder.mkdir(mode=0o700, parents=True)
    steps: list[_Step] = []
    made: dict[str, None] = {}
    names = ExactNames(target, (replacement.path for replacement in replacements))
    for number, replacement in enumerate(replacements):
        old = names.side_at(replacement.path)
        if old:
            _copy(old, folder / f"old{number}")
        permissions, after = old.mode & 0o777 if old else 0, _after(replacement.new)
        steps.append(_Step(replacement.path, KeptState.of(old), after, permissions, replacement.has_edits))
        parts = parts_of(replacement.path) if replacement.new else []
        parents = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        made |= dict.fromkeys(parent for parent in parents if look(target, parent) is None)
    _Kept(folder, tuple(steps), tuple(made), removable(target, replacements)).save()
    descriptor = os.open(folder, DIRECTORY)
    try:
        sync_file_system(descriptor)
    finally:
        os.close(descriptor)


def _copy(side: Side, file: Path) -> None:
    if side.is_link:
        file.symlink_to(os.fsdecode(side.read()))
        return
    with side.open() as source, file.open("xb+") as copy:
        copy_data(source.fileno(), copy.fileno())


def _after(content: Content | None) -> KeptState:
    if content is None:
        return KeptState()
    side = content.source
    return KeptState(side.sha256, side.git_mode if side.is_link else "100755" if content.mode & 0o100 else "100644")


def _newest(undo_dir: Path, target: Path) -> _Kept | None:
    """Return the newest kept apply that is in the target; None without any."""
    for number in sorted(_numbers(undo_dir), reverse=True):
        kept = _load(undo_dir / str(number))
        if kept is None:
            continue
        names = kept.names_in(target)
        now = [KeptState.of(names.side_at(step.path)) for step in kept.steps]
        if now == [step.after for step in kept.steps] or now != [step.before for step in kept.steps]:
            return kept
    return None


def _load(folder: Path) -> _Kept | None:
    """Return the kept apply in a folder; None if it was cut off, before the apply or after its undo."""
    try:
        record = json.loads((folder / _RECORD).read_text())
        steps = tuple(
            _Step(
                step["path"],
                KeptState(**step["before"]),
                KeptState(**step["after"]),
                step["permissions"],
                step["has_edits"],
            )
            for step in record["steps"]
        )
        return _Kept(folder, steps, tuple(record["made"]), parse_attributes(record["removed"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            f"{folder / _RECORD} is damaged ({error}): restore it from a backup, or remove {folder}; without it that "
            "apply cannot be undone"
        ) from None


def _numbers(undo_dir: Path) -> list[int]:
    return [int(path.name) for path in undo_dir.iterdir()] if undo_dir.is_dir() else []
