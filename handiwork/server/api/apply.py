"""Operations that bring a session's work home: apply with its preview and undo, a branch, a patch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from starlette.responses import Response

from handiwork.errors import HandiworkError
from handiwork.log.eventlog import EventLog
from handiwork.server.operations import Operation, OperationCall
from handiwork.server.schemas.apply import (
    ApplyConflict,
    ApplyPreview,
    ApplyResult,
    NewApply,
    SessionBranch,
    UndoResult,
)
from handiwork.session.apply import (
    InPlaceError,
    apply_session,
    bring_commits,
    make_branch,
    preview_session,
    undo_session,
)
from handiwork.session.config import config_of
from handiwork.session.open import changes
from handiwork.session.pull_request import find_target
from handiwork.session.time_travel.commits import has_new_head
from handiwork.workspace.apply import Applied, Conflict
from handiwork.workspace.files.names import quoted
from handiwork.workspace.patch import unified_diff


async def preview_apply(call: OperationCall[None, None]) -> ApplyPreview:
    """Return what an apply would change in the user's directory, its conflicts, and what could be undone."""
    log, data = await call.log(), call.supervisor.data
    commits = await has_new_head(data, log)
    try:
        preview = await preview_session(data, log)
    except InPlaceError:
        workspace = (await config_of(log)).workspace
        return ApplyPreview(
            workspace=workspace,
            in_place=True,
            written=[],
            deleted=[],
            unchanged=[],
            warnings=[],
            conflicts=[],
            undoable=[],
            commits=commits,
            request=await _request_noun(log),
        )
    applied = preview.applied
    return ApplyPreview(
        workspace=str(preview.workspace),
        in_place=False,
        written=_names(applied.written),
        deleted=_names(applied.deleted),
        unchanged=_names(applied.unchanged),
        warnings=list(applied.warnings),
        conflicts=await asyncio.to_thread(_conflicts, preview.conflicts),
        undoable=_names(preview.undoable),
        commits=commits,
        request=await _request_noun(log),
    )


async def apply_changes(call: OperationCall[None, NewApply]) -> ApplyResult:
    """Apply the session's changes to the user's directory, all or nothing, and bring its commits as a branch."""
    log, supervisor = await call.log(), call.supervisor
    try:
        workspace, applied = await apply_session(supervisor.data, log, call.body.resolutions)
    except InPlaceError as error:
        workspace, applied = Path((await config_of(log)).workspace), Applied((), (), (), (f"{error}.",))
    commits = await bring_commits(supervisor.store, supervisor.data, log)
    warnings = [*applied.warnings, *filter(None, [commits.note])]
    if commits.error:
        warnings.append(f"The files are applied, but not the commits: {commits.error}.")
    return ApplyResult(
        workspace=str(workspace),
        written=_names(applied.written),
        deleted=_names(applied.deleted),
        unchanged=_names(applied.unchanged),
        warnings=warnings,
        branch=commits.branch,
    )


async def undo_apply(call: OperationCall[None, None]) -> UndoResult:
    """Undo the session's last apply, unless a file was edited since; a branch stays."""
    workspace, undone = await undo_session(call.supervisor.data, await call.log())
    return UndoResult(workspace=str(workspace), restored=_names(undone.restored), deleted=_names(undone.deleted))


async def create_branch(call: OperationCall[None, None]) -> SessionBranch:
    """Commit the session's changes to a new branch of the user's repository, whose files stay as they are."""
    log, supervisor = await call.log(), call.supervisor
    branch, warnings = await make_branch(supervisor.store, supervisor.data, log)
    return SessionBranch(branch=branch, warnings=list(warnings))


async def download_patch(call: OperationCall[None, None]) -> Response:
    """Return the session's changes as a patch for `git apply`."""
    log = await call.log()
    patch = await asyncio.to_thread(unified_diff, await changes(call.supervisor.data, log))
    headers = {
        "content-disposition": f'attachment; filename="handiwork-{log.id}.patch"',
        "x-content-type-options": "nosniff",
    }
    return Response(patch.encode(errors="surrogateescape"), media_type="text/x-diff; charset=utf-8", headers=headers)


async def _request_noun(log: EventLog) -> str | None:
    try:
        return (await find_target(log)).noun
    except HandiworkError:
        return None  # the operations on pull requests tell why


def _names(paths: Iterable[str]) -> list[str]:
    return [quoted(path) for path in paths]


def _conflicts(conflicts: Iterable[Conflict]) -> list[ApplyConflict]:
    return [
        ApplyConflict(
            path=quoted(conflict.path),
            reason=conflict.reason,
            can_take=conflict.can_take,
            patch=unified_diff([conflict.change]).encode(errors="replace").decode() if conflict.can_take else "",
        )
        for conflict in conflicts
    ]


_AT = "/api/sessions/{session}"
OPERATIONS = (
    Operation("GET", f"{_AT}/apply", preview_apply, ApplyPreview),
    Operation("POST", f"{_AT}/apply", apply_changes, ApplyResult, body=NewApply),
    Operation("POST", f"{_AT}/apply/undo", undo_apply, UndoResult),
    Operation("POST", f"{_AT}/branch", create_branch, SessionBranch),
    Operation("GET", f"{_AT}/patch", download_patch, None, gives="text/x-diff"),
)
