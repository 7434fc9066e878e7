"""The names, arguments and options of the commands that go back in a session."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from handiwork.cli.errors import guarded
from handiwork.cli.options import (
    AgentName,
    AsJson,
    BaseUrl,
    ModelName,
    Session,
)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (diff, fork, tree, gc):
        app.command()(command)


def diff(
    session: Session = None,
    first: Annotated[int | None, typer.Option("--from", help="Show only changes after this event.")] = None,
    last: Annotated[int | None, typer.Option("--to", help="Show only changes up to this event.")] = None,
) -> None:
    """Print a session's changes as a patch.

    \b
    handiwork diff 3fa9 > fix.patch
    handiwork diff 3fa9 --from 12 --to 20
    """

    def command() -> Any:
        from handiwork.cli.commands.changes import diff

        return diff(session, first, last)

    guarded(command)


def fork(
    at: Annotated[
        int,
        typer.Option(
            "--at",
            help="The number of the event to continue from; `handiwork show` prints those of steps.",
        ),
    ],
    session: Session = None,
    restore: Annotated[
        str, typer.Option("--restore", help="What to restore from that event: both, files, or conversation.")
    ] = "both",
    message: Annotated[
        str | None, typer.Option("--message", help="A message to the agent; the fork starts at once.")
    ] = None,
    agent: AgentName = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a new session that continues from an event of this one, with the files of that moment.

    The session itself, and its files, stay unchanged.

    \b
    handiwork fork 3fa9 --at 12
    handiwork fork 3fa9 --at 12 --model anthropic:claude-sonnet-4-5 --message "do it without the regex"
    handiwork fork 3fa9 --at 12 --restore files
    """
    if restore not in ("both", "files", "conversation"):
        raise typer.BadParameter("--restore takes both, files or conversation")

    def command() -> Any:
        from handiwork.cli.commands.fork import fork

        return fork(session, at, restore, message, as_json, {"agent": agent, "model": model, "base_url": base_url})

    guarded(command)


def tree(session: Session = None) -> None:
    """Show a session's origin and its forks."""

    def command() -> Any:
        from handiwork.cli.commands.fork import tree

        return tree(session)

    guarded(command)


def gc() -> None:
    """Remove files that no session needs, and the oldest snapshots if they exceed their limit."""

    def command() -> Any:
        from handiwork.cli.commands.fork import gc

        return gc()

    guarded(command)
