"""``handiwork diff`` and ``handiwork apply``, and the changes at the end of a run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from rich.text import Text

from handiwork.cli.commands.sessions import find
from handiwork.cli.errors import say
from handiwork.cli.terminal.output_lines import coloured_diff_line
from handiwork.cli.terminal.sanitize import exact
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.apply import InPlaceError, apply_session, bring_commits, preview_session, undo_session
from handiwork.session.config import config_of
from handiwork.session.open import changes_and_note
from handiwork.session.time_travel.history import changes_from_to
from handiwork.settings import SettingsError
from handiwork.workspace.apply import Applied, ConflictError
from handiwork.workspace.apply.journal import undo_cut_apply
from handiwork.workspace.apply.undo import EditedSinceError
from handiwork.workspace.changes import Change
from handiwork.workspace.files.names import quoted
from handiwork.workspace.patch import diffstat, unified_diff

OVERVIEW_LINES = 200
"""The number of diff lines shown at the end of a run."""


def diff(session: str | None, first: int | None, last: int | None) -> Exit:
    """Print a session's changes, or those between two events: coloured on a terminal, otherwise as a patch."""
    if first is None and last is None:
        file_changes, note = asyncio.run(_changes(session))
    else:
        file_changes, note = asyncio.run(_changes_from_to(session, first, last)), ""
    text = unified_diff(file_changes)
    if not text:
        say("no changes")
    elif sys.stdout.isatty():
        console = terminal_console()
        for line in _diff_lines(text):
            console.print(line, soft_wrap=True)
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        if left_out := [quoted(change.path) for change in file_changes if change.binary]:
            say(f"the patch only names the binary files {', '.join(left_out)}: `handiwork apply` brings them")
    if note:
        say(note)
    return Exit.FINISHED


def apply(session: str | None, dry_run: bool, undo: bool) -> Exit:
    """Apply a session's changes to its workspace, then bring its commits as a branch and print its name; or undo that.

    A conflict fails and changes nothing. If the commits cannot be brought, return INFRASTRUCTURE; the files stay.
    """
    if dry_run and undo:
        raise SettingsError("--dry-run and --undo exclude each other")
    try:
        return asyncio.run(_undo(session) if undo else _preview(session) if dry_run else _apply(session))
    except (ConflictError, EditedSinceError) as error:
        say(str(error))
        return Exit.FAILED


async def _preview(session: str | None) -> Exit:
    async with Store.open(data_dir()) as store:
        try:
            plan = await preview_session(data_dir(), await find(store, session))
        except InPlaceError as error:
            say(str(error))
            return Exit.FINISHED
    if plan.conflicts:
        raise ConflictError([(conflict.path, conflict.reason) for conflict in plan.conflicts])
    _report(plan.applied)
    count = len(plan.applied.written) + len(plan.applied.deleted)
    say(f"files that would change in {plan.workspace}: {count}; nothing was changed")
    return Exit.FINISHED


async def _apply(session: str | None) -> Exit:
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        try:
            workspace, applied = await apply_session(data_dir(), log)
        except InPlaceError as error:
            say(str(error))
        else:
            _report(applied)
            say(f"files changed in {workspace}: {len(applied.written) + len(applied.deleted)}")
        commits = await bring_commits(store, data_dir(), log)
    if commits.note:
        say(commits.note)
    if commits.error:
        say(f"the files are applied, but not the commits: {commits.error}")
        return Exit.INFRASTRUCTURE
    if commits.branch is not None:
        say(f"commits are on branch {commits.branch}")
    return Exit.FINISHED


async def _undo(session: str | None) -> Exit:
    async with Store.open(data_dir()) as store:
        workspace, undone = await undo_session(data_dir(), await find(store, session))
    _list(("restored", undone.restored), ("deleted", undone.deleted))
    say(f"files as before the apply in {workspace}: {len(undone.restored) + len(undone.deleted)}")
    return Exit.FINISHED


def _report(applied: Applied) -> None:
    _list(("written", applied.written), ("deleted", applied.deleted), ("the same", applied.unchanged))
    for warning in applied.warnings:
        say(warning)


def _list(*groups: tuple[str, tuple[str, ...]]) -> None:
    console = terminal_console()
    for line in changed_paths(*groups):
        console.print(line, soft_wrap=True)


def changed_paths(*groups: tuple[str, tuple[str, ...]]) -> list[Text]:
    """Return a line for each path, behind the word of its group."""
    return [Text(f"{word:10}{quoted(path)}") for word, paths in groups for path in paths]


def overview(file_changes: list[Change], session: str) -> list[Text]:
    """Return the summary of changes after a run: the diff's first lines and, if it is longer, a line per file."""
    if not file_changes:
        return [Text("\nno changes\n", "dim")]
    text = unified_diff(file_changes).rstrip("\n")
    shown, more = "\n".join(text.split("\n", OVERVIEW_LINES)[:OVERVIEW_LINES]), text.count("\n") + 1 - OVERVIEW_LINES
    summary = [Text("\nchanges", "cyan dim"), *_diff_lines(shown)]
    if more > 0:
        summary.append(Text(f"... {more} more lines (handiwork diff {session})", "dim italic"))
        for path, added, deleted in diffstat(file_changes):
            summary.append(
                Text.assemble((f"{f'+{added}':>7}", "green"), (f"{f'-{deleted}':>7}  ", "red"), quoted(path))
            )
    return [*summary, Text()]


def _diff_lines(text: str) -> list[Text]:
    """Return the lines of a patch with every control character escaped, except the end of a line with CR LF."""
    lines = text.rstrip("\n").split("\n")
    return [coloured_diff_line(Text(exact(line.removesuffix("\r")))) for line in lines]


async def _changes_from_to(session: str | None, first: int | None, last: int | None) -> list[Change]:
    async with Store.open(data_dir()) as store:
        return await changes_from_to(data_dir(), await find(store, session), first, last)


async def _changes(session: str | None) -> tuple[list[Change], str]:
    """Return a session's changes, and a note about ignored ones; first undo an apply that a crash cut off."""
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        if warning := await asyncio.to_thread(undo_cut_apply, Path((await config_of(log)).workspace)):
            say(warning)
        return await changes_and_note(data_dir(), log)
