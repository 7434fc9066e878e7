"""Bring a session's work into the user's directory: its changes, and its commits as a branch; and undo that."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from handiwork.errors import HandiworkError, SandboxError, WorkspaceError
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.session.config import config_of
from handiwork.session.open import all_changes_and_note
from handiwork.session.storage.layout import session_dir
from handiwork.session.time_travel.commits import NoRepositoryError, fetch_commits
from handiwork.workspace.apply import Applied, Conflict, Resolution, apply, preview
from handiwork.workspace.apply.journal import undo_cut_apply
from handiwork.workspace.apply.undo import KeptState, Undone, reverted, undo, undoable
from handiwork.workspace.changes import Change
from handiwork.workspace.copy import Workspace
from handiwork.workspace.files.names import quoted_list
from handiwork.workspace.git.commit_changes import commit_changes, name_commit

_UNDO = "applied"
"""The folder, inside a session's folder, of the files that its applies replaced."""


class InPlaceError(WorkspaceError):
    """The agent worked in the user's directory itself."""


@dataclass(frozen=True)
class Preview:
    """The expected result of an apply in ``workspace``, and the ``undoable`` paths of the last apply."""

    workspace: Path
    applied: Applied
    conflicts: tuple[Conflict, ...]
    undoable: tuple[str, ...]


@dataclass(frozen=True)
class Commits:
    """The ``branch`` that has a session's commits, None without any; why others stay, or could not be brought."""

    branch: str | None = None
    note: str = ""
    error: str = ""


@dataclass(frozen=True)
class SessionCommit:
    """A ``commit`` of a session's changes; ``warnings`` has a sentence for each change that it lacks."""

    commit: str
    warnings: tuple[str, ...]


async def preview_session(data: Path, log: EventLog) -> Preview:
    """Return a preview of ``apply_session``. Raises InPlaceError, SessionError, WorkspaceError."""
    workspace = await _workspace(log)
    notices, undo_dir = await _recover(workspace), _undo_dir(data, log)
    file_changes, ignored = await _changes(data, log, workspace)
    applied, conflicts = await asyncio.to_thread(
        preview, file_changes, workspace, undo_dir, began=await _began(data, log)
    )
    kept = await asyncio.to_thread(undoable, undo_dir, workspace)
    return Preview(workspace, _with_notices(applied, notices + ignored), conflicts, tuple(kept))


async def apply_session(
    data: Path, log: EventLog, resolutions: Mapping[str, Resolution] | None = None
) -> tuple[Path, Applied]:
    """Apply a session's changes to its workspace; return that directory and the changes made in it.

    ``resolutions`` are those of ``apply``. Raises ConflictError on others, InPlaceError, SessionError,
    WorkspaceError; no file is changed then.
    """
    workspace = await _workspace(log)
    notices, undo_dir = await _recover(workspace), _undo_dir(data, log)
    file_changes, ignored = await _changes(data, log, workspace)
    applied = await asyncio.to_thread(
        apply, file_changes, workspace, resolutions, undo_dir=undo_dir, began=await _began(data, log)
    )
    return workspace, _with_notices(applied, notices + ignored)


async def bring_commits(store: Store, data: Path, log: EventLog) -> Commits:
    """Fetch the session's commits as a branch of the user's repository."""
    try:
        fetched = await fetch_commits(store, data, log)
        return Commits(fetched.branch, _others_note(fetched.others))
    except NoRepositoryError as error:
        return Commits(note=str(error))
    except HandiworkError as error:
        return Commits(error=str(error))


def _others_note(branches: Sequence[str]) -> str:
    if not branches:
        return ""
    return (
        f"commits stay in the session that its HEAD lacks, on {quoted_list(branches, 5)}: to bring them, have the"
        " branch checked out there, and try again"
    )


async def make_branch(store: Store, data: Path, log: EventLog) -> tuple[str, tuple[str, ...]]:
    """Make a branch with the session's changes; return its name and the warnings. Raises like ``commit_session``."""
    workspace = Path((await config_of(log)).workspace)
    made = await commit_session(store, data, log)
    return await asyncio.to_thread(name_commit, workspace, session_branch(log), made.commit), made.warnings


def session_branch(log: EventLog) -> str:
    """Return the name of the session's first branch; others have a number after it."""
    return f"handiwork/{log.id}"


def commit_mark(log: EventLog) -> str:
    """Return the line that the message of every commit of the session's changes has."""
    return f"Handiwork session {log.id}"


async def commit_session(store: Store, data: Path, log: EventLog, title: str = "") -> SessionCommit:
    """Commit a session's changes on top of its own commits, or of the user's HEAD.

    The commit's ``title`` is by default the session's. The user's files stay as they are. Raises ConflictError,
    SandboxError, LeaseHeld, SessionError, WorkspaceError.
    """
    await _check_copied_back(data, log)
    workspace, title = Path((await config_of(log)).workspace), title or (await log.info()).title
    fetched = await fetch_commits(store, data, log)
    found, note = await all_changes_and_note(data, log, moved=False)
    commit, applied = await asyncio.to_thread(
        commit_changes,
        workspace,
        [change for change in found if not change.ignored],
        fetched.branch or "HEAD",
        f"{title}\n\n{commit_mark(log)}\n",
        merge=fetched.branch is None,
    )
    notes = [f"{text}." for text in (note, _others_note(fetched.others)) if text]
    warnings = *notes, *applied.warnings
    if (made := commit or fetched.branch) is None:
        problem = f"HEAD of {workspace} has all changes of the session, so no branch was made"
        raise WorkspaceError("\n".join([problem, *warnings]))
    return SessionCommit(made, warnings)


async def undo_session(data: Path, log: EventLog) -> tuple[Path, Undone]:
    """Undo the session's last apply; return the directory and the changes made in it. A branch stays.

    Raises NothingToUndoError, EditedSinceError, InPlaceError, WorkspaceError; no file is changed then.
    """
    workspace = await _workspace(log)
    await _recover(workspace)
    return workspace, await asyncio.to_thread(undo, _undo_dir(data, log), workspace)


async def _workspace(log: EventLog) -> Path:
    config = await config_of(log)
    if config.in_place:
        raise InPlaceError(f"the agent worked in place: its changes are already in {config.workspace}")
    return Path(config.workspace)


async def _changes(data: Path, log: EventLog, workspace: Path) -> tuple[list[Change], tuple[str, ...]]:
    """Return the session's changes, with those that revert files which it restored since an apply, and a notice."""
    await _check_copied_back(data, log)
    found, note = await all_changes_and_note(data, log)
    base = Workspace.load(session_dir(data, log.id)).base
    restored = await asyncio.to_thread(reverted, _undo_dir(data, log), workspace.resolve(), base, found)
    applied = [change for change in found if not change.ignored]
    return sorted([*applied, *restored], key=lambda change: change.path), (f"{note}.",) if note else ()


async def _check_copied_back(data: Path, log: EventLog) -> None:
    """Raise WorkspaceError if a run that was killed left the session's latest changes on a remote Docker daemon."""
    from handiwork.sandbox.docker.remote_files import check_nothing_waits

    if await log.holder() is None:
        try:
            check_nothing_waits(session_dir(data, log.id))
        except SandboxError as error:
            raise WorkspaceError(str(error)) from error


async def _began(data: Path, log: EventLog) -> dict[str, KeptState]:
    """Return the changed files with which a fork began: an apply of its parent may have left them in the workspace."""
    history = (await config_of(log)).files(session_dir(data, log.id)).history
    if history is None or not (tree := history.workspace.tree):
        return {}
    began = await asyncio.to_thread(history.changes_between, "", tree)
    return {change.path: await asyncio.to_thread(KeptState.of, change.new) for change in began}


async def _recover(workspace: Path) -> tuple[str, ...]:
    """Undo an apply that a crash cut off; return a sentence about it, if there was one."""
    notice = await asyncio.to_thread(undo_cut_apply, workspace)
    return (f"{notice}.",) if notice else ()


def _with_notices(applied: Applied, notices: tuple[str, ...]) -> Applied:
    return replace(applied, warnings=(*notices, *applied.warnings))


def _undo_dir(data: Path, log: EventLog) -> Path:
    return session_dir(data, log.id) / _UNDO
