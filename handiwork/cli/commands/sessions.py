"""``handiwork sessions`` and ``handiwork show``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from datetime import datetime
from pathlib import Path

from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.summary import summary
from handiwork.cli.terminal.transcript import Transcript
from handiwork.cli.terminal.view import print_lines, terminal_console
from handiwork.errors import Exit, HandiworkError
from handiwork.events.base import Event, Observation
from handiwork.events.codec import to_json
from handiwork.events.describe import state_text
from handiwork.log.errors import SessionMissing
from handiwork.log.eventlog import EventLog
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import config_of
from handiwork.session.storage.layout import session_dir

PAGE = 500


async def find(store: Store, session: str | None) -> EventLog:
    """Return the log of the session whose id starts with ``session``. Raises SessionMissing.

    None means the newest session; archived ones count only if there is no other.
    """
    if session is not None:
        return await store.log(session)
    newest = await store.sessions(limit=1, archived=False) or await store.sessions(limit=1)
    if not newest:
        raise SessionMissing('there is no session yet; start one with: handiwork run "your task"')
    return await store.log(newest[0].id)


async def sessions(as_json: bool, search: str, archived: bool) -> Exit:
    """List the sessions that are archived or those that are not, newest first; with ``search``, those that hold it."""
    console = terminal_console()
    async with Store.open(data_dir()) as store:
        found = await store.sessions(text=search, archived=archived)
        for info in found:
            if as_json:
                fields = {**dataclasses.asdict(info), "interrupted": await store.interrupted(info)}
                write_json(json.dumps(fields, default=datetime.isoformat, ensure_ascii=False))
            else:
                console.print(row(info, await state_words(store, info)), soft_wrap=True)
        if not found:
            say(await _why_none(store, search, archived))
    return Exit.FINISHED


async def _why_none(store: Store, search: str, archived: bool) -> str:
    if search:
        return f"no {'archived ' if archived else ''}session has {search!r} in its title, messages, commands or results"
    if archived:
        return "no session is archived; archive one with: handiwork archive SESSION"
    if await store.sessions(limit=1):
        return "all sessions are archived; list them with: handiwork sessions --archived"
    return 'there is no session yet; start one with: handiwork run "your task"'


async def archive(session: list[str], undo: bool) -> Exit:
    """Leave sessions out of lists, or list them again. Raises SessionMissing, and then changes none."""
    async with Store.open(data_dir()) as store:
        logs = [await store.log(prefix) for prefix in session]
        for log in logs:
            await store.update(log.id, archived=not undo)
            say(f"session {log.id} is {'listed again' if undo else 'archived'}")
    return Exit.FINISHED


async def state_words(store: Store, info: SessionInfo) -> str:
    """Return the words for the session's state: no process may run it any more, or it may have no task yet."""
    if not await store.interrupted(info):
        return info.state
    return "no task yet" if info.state == "loading" else "interrupted"


def row(info: SessionInfo, state: str) -> Text:
    """Return the line of a session in lists, with its ``state`` as ``state_words`` returns it."""
    style = {"finished": "green", "rejected": "red", "error": "red"}.get(info.state, "yellow")
    return Text.assemble(
        (f"{info.id}  ", "bold"),
        (f"{info.updated.astimezone():%Y-%m-%d %H:%M}  ", "dim"),
        (f"{state_text(state):<21}  ", style),
        plain(info.title).replace("\n", " "),
        (f"  {_facts(info)}", "dim"),
    )


def _facts(info: SessionInfo) -> str:
    """Return the session's project, its cost and the size of its changes, as far as they are known."""
    facts = [plain(Path(info.workspace).name)]
    if info.spent:
        facts.append(f"${info.spent:.4f}")
    if info.added or info.deleted:
        facts.append(f"+{info.added} −{info.deleted}")
    return " · ".join(filter(None, facts))


async def show(session: str | None, as_json: bool, full: bool) -> Exit:
    """Print the events of a session and its summary."""
    console = terminal_console()
    state = State()
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        transcript = Transcript(log.id, full, console if console.is_terminal else None)
        while page := await log.read(after=state.last_id, limit=PAGE):
            for event in page:
                state.apply(event)
                shown = await with_full_text(store, event) if full else event
                if as_json:
                    write_json(to_json(shown))
                else:
                    print_lines(console, transcript.lines(shown))
        if not as_json:
            interrupted = await store.interrupted(await log.info())
            changed = await _has_changes(log)
            print_lines(console, [Text(), *summary(state, log.id, changed, interrupted=interrupted)])
    return Exit.FINISHED


async def _has_changes(log: EventLog) -> bool:
    """Return whether there are changes or commits to apply; True if they cannot be read, as ``apply`` says why."""
    try:
        config = await config_of(log)
        files = config.files(session_dir(data_dir(), log.id))
        return await asyncio.to_thread(lambda: files.has_commits() or (not config.in_place and bool(files.changes())))
    except (HandiworkError, OSError):
        return True


async def with_full_text(store: Store, event: Event) -> Event:
    """Return the event with its full text, read from the blob."""
    if not isinstance(event, Observation) or event.blob is None:
        return event
    content = (await store.blobs.get(event.blob)).decode(errors="backslashreplace")
    return event.model_copy(update={"content": content, "tail": "", "size": 0, "blob": None})
