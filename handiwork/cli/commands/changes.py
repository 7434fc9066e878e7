"""``handiwork diff`` and ``handiwork apply``, and the changes at the end of a run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from rich.text import Text

from handiwork.cli.commands.sessions import find
from handiwork.cli.errors import say
from handiwork.cli.terminal.output_lines import coloured_diff_line
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit, SandboxError, WorkspaceError
from handiwork.log.errors import LeaseHeld
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig, config_of
from handiwork.session.open import changes
from handiwork.session.time_travel.commits import NoRepositoryError, fetch_commits
from handiwork.session.time_travel.history import changes_from_to
from handiwork.workspace.apply import Applied, ConflictError
from handiwork.workspace.apply import apply as apply_changes
from handiwork.workspace.apply.journal import undo_cut_apply
from handiwork.workspace.changes import Change
from handiwork.workspace.files.names import quoted
from handiwork.workspace.patch import diffstat, unified_diff

OVERVIEW_LINES = 200
"""The number of diff lines shown at the end of a run."""


def diff(session: str | None, first: int | None, last: int | None) -> Exit:
    """Print a session's changes, or those between two events: coloured on a terminal, otherwise as a patch."""
    if first is None and last is None:
        file_changes, _ = asyncio.run(_changes(session))
    else:
        file_changes = asyncio.run(_changes_from_to(session, first, last))
    text = unified_diff(file_changes)
    if not text:
        say("no changes")
    elif sys.stdout.isatty():
        console = terminal_console()
        for line in _diff_lines(text):
            console.print(line, soft_wrap=True)
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    return Exit.FINISHED


def apply(session: str | None, dry_run: bool) -> Exit:
    """Apply a session's changes to its workspace, then bring its commits as a branch and print its name.

    A conflict fails and changes nothing. If the commits cannot be brought, return INFRASTRUCTURE; the files stay.
    """
    file_changes, config = asyncio.run(_changes(session))
    workspace = Path(config.workspace)
    if config.in_place:
        say(f"the agent worked in place: its changes are already in {workspace}")
    else:
        try:
            applied = apply_changes(file_changes, workspace, dry_run=dry_run)
        except ConflictError as error:
            say(str(error))
            return Exit.FAILED
        _report(applied, workspace, dry_run)
    return Exit.FINISHED if dry_run else asyncio.run(_bring_commits(session))


async def _bring_commits(session: str | None) -> Exit:
    async with Store.open(data_dir()) as store:
        try:
            branch = await fetch_commits(store, data_dir(), await find(store, session))
        except NoRepositoryError as error:
            say(str(error))
        except (WorkspaceError, SandboxError, LeaseHeld) as error:
            say(f"the files are applied, but not the commits: {error}")
            return Exit.INFRASTRUCTURE
        else:
            if branch is not None:
                say(f"commits are on branch {branch}")
    return Exit.FINISHED


def _report(applied: Applied, workspace: Path, dry_run: bool) -> None:
    console = terminal_console()
    for word, paths in (("written", applied.written), ("deleted", applied.deleted), ("the same", applied.unchanged)):
        for path in paths:
            console.print(Text(f"{word:10}{quoted(path)}"), soft_wrap=True)
    for warning in applied.warnings:
        say(warning)
    count = len(applied.written) + len(applied.deleted)
    if dry_run:
        say(f"files that would change in {workspace}: {count}; nothing was changed")
    else:
        say(f"files changed in {workspace}: {count}")


def overview(file_changes: list[Change], session: str) -> list[Text]:
    """Return the summary of changes after a run: the diff's first lines and, if it is longer, a line per file."""
    if not file_changes:
        return [Text("\nno changes\n", "dim")]
    lines = _diff_lines(unified_diff(file_changes))
    summary = [Text("\nchanges", "cyan dim"), *lines[:OVERVIEW_LINES]]
    if len(lines) > OVERVIEW_LINES:
        summary.append(Text(f"... {len(lines) - OVERVIEW_LINES} more lines (handiwork diff {session})", "dim italic"))
        for path, added, deleted in diffstat(file_changes):
            summary.append(
                Text.assemble((f"{f'+{added}':>7}", "green"), (f"{f'-{deleted}':>7}  ", "red"), quoted(path))
            )
    return [*summary, Text()]


def _diff_lines(text: str) -> list[Text]:
    return [coloured_diff_line(Text(line)) for line in plain(text).rstrip("\n").split("\n")]


async def _changes_from_to(session: str | None, first: int | None, last: int | None) -> list[Change]:
    async with Store.open(data_dir()) as store:
        return await changes_from_to(data_dir(), await find(store, session), first, last)


async def _changes(session: str | None) -> tuple[list[Change], SessionConfig]:
    """Return a session's changes and its configuration; first undo an apply that a crash cut off."""
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        config = await config_of(log)
        if warning := await asyncio.to_thread(undo_cut_apply, Path(config.workspace)):
            say(warning)
        return await changes(data_dir(), log), config
