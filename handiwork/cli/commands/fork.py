"""``handiwork fork``, ``handiwork tree`` and ``handiwork gc``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from handiwork.cli.commands.run import model_changes, resume
from handiwork.cli.commands.sessions import find, state_words
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.events.describe import state_text
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.sandbox.limits.limits import size_text
from handiwork.session.config import agent_name
from handiwork.session.storage.gc import clean
from handiwork.session.time_travel import fork as forks
from handiwork.session.time_travel.fork import Restored
from handiwork.settings import check_environment, load
from handiwork.workspace.session_files import GIGABYTE


def fork(
    session: str | None, at: int, restore: Restored, message: str | None, as_json: bool, flags: Mapping[str, Any]
) -> Exit:
    """Fork a session at an event; with a message, run the fork. Raises like ``resume``, and SessionError."""
    check_environment()
    changes: dict[str, Any] = {key: value for key, value in flags.items() if value is not None}
    if "agent" in changes:
        changes["agent"] = agent_name(str(changes["agent"]))
    fork_id = asyncio.run(_fork(session, at, restore, message, changes))
    if message is not None:
        return resume(fork_id, None, False, as_json, {})
    if as_json:
        write_json(json.dumps({"session": fork_id}))
    else:
        terminal_console().print(Text(fork_id), soft_wrap=True)
    say(f"forked; run the fork with `handiwork resume {fork_id}`")
    return Exit.FINISHED


async def _fork(
    session: str | None, at: int, restored: Restored, message: str | None, changes: Mapping[str, Any]
) -> str:
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        changes = {**changes, **await model_changes(log, changes)}
        return (await forks.fork(store, data_dir(), log, at, restored, message, **changes)).id


async def tree(session: str | None) -> Exit:
    """Print a session with its ancestors and all their forks, as a tree."""
    async with Store.open(data_dir()) as store:
        chosen = (await find(store, session)).id
        family = await store.family(chosen)
        words = {info.id: await state_words(store, info) for info in family}
    console = terminal_console()
    stack = [(family[0], 0)]
    while stack:
        info, depth = stack.pop()
        console.print(_row(info, depth, chosen, words[info.id]), soft_wrap=True)
        stack += [(one, depth + 1) for one in reversed(family) if one.parent == info.id]
    return Exit.FINISHED


def _row(info: SessionInfo, depth: int, chosen: str, state: str) -> Text:
    origin = f"at event {info.parent_event}, " if depth else ""
    return Text.assemble(
        "  " * depth,
        (info.id, "bold cyan" if info.id == chosen else "bold"),
        (f"  {origin}{info.head} events, {state_text(state)}, {plain(info.model)}  ", "dim"),
        plain(info.title).replace("\n", " "),
    )


async def gc() -> Exit:
    """Remove everything no session needs, and the oldest snapshots over the limit; print the space freed."""
    budget = load({}).snapshots * GIGABYTE
    async with Store.open(data_dir()) as store:
        cleaned = await clean(store, data_dir(), budget)
    parts = {"snapshots": cleaned.snapshots, "outputs and pictures": cleaned.blobs, "session folders": cleaned.sessions}
    freed = ", ".join(f"{size_text(size)} of {name}" for name, size in parts.items() if size)
    say(f"freed {freed or size_text(0)}; snapshots take {size_text(cleaned.remaining)}")
    return Exit.FINISHED
