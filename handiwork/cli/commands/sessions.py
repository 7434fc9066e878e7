"""``handiwork sessions`` and ``handiwork show``."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime

from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.summary import summary
from handiwork.cli.terminal.transcript import Transcript
from handiwork.cli.terminal.view import print_lines, terminal_console
from handiwork.errors import Exit
from handiwork.events.base import Event, Observation
from handiwork.events.codec import to_json
from handiwork.log.errors import SessionMissing
from handiwork.log.eventlog import EventLog
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store
from handiwork.paths import data_dir

PAGE = 500


async def find(store: Store, session: str | None) -> EventLog:
    """Return the log of the session whose id starts with ``session`` (None: the newest). Raises SessionMissing."""
    if session is not None:
        return await store.log(session)
    newest = await store.sessions(limit=1)
    if not newest:
        raise SessionMissing('there is no session yet; start one with: handiwork run "your task"')
    return await store.log(newest[0].id)


async def sessions(as_json: bool) -> Exit:
    """List all sessions, newest first."""
    console = terminal_console()
    before: str | None = None
    async with Store.open(data_dir()) as store:
        while page := await store.sessions(limit=PAGE, before=before):
            for info in page:
                if as_json:
                    write_json(json.dumps(dataclasses.asdict(info), default=datetime.isoformat, ensure_ascii=False))
                else:
                    console.print(row(info, await _state(store, info)), soft_wrap=True)
            before = page[-1].id
    if before is None:
        say('there is no session yet; start one with: handiwork run "your task"')
    return Exit.FINISHED


async def _state(store: Store, info: SessionInfo) -> str:
    """Return the words for the session's state: no process may run it any more, or it may have no task yet."""
    words = {"loading": "no task yet", "running": "interrupted"}.get(info.state)
    return words if words and await (await store.log(info.id)).holder() is None else info.state


def row(info: SessionInfo, state: str = "") -> Text:
    """Return the line of a session in lists, with a ``state`` that is not the stored one."""
    style = {"finished": "green", "rejected": "red", "error": "red"}.get(info.state, "yellow")
    return Text.assemble(
        (f"{info.id}  ", "bold"),
        (f"{info.updated.astimezone():%Y-%m-%d %H:%M}  ", "dim"),
        (f"{(state or info.state).replace('_', ' '):<26}  ", style),
        plain(info.title).replace("\n", " "),
    )


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
                if as_json:
                    write_json(to_json(event))
                    continue
                print_lines(console, transcript.lines(await with_full_text(store, event) if full else event))
    if not as_json:
        print_lines(console, [Text(), *summary(state, log.id, changed=True)])
    return Exit.FINISHED


async def with_full_text(store: Store, event: Event) -> Event:
    """Return the event with its full text, read from the blob."""
    if not isinstance(event, Observation) or event.blob is None:
        return event
    content = (await store.blobs.get(event.blob)).decode(errors="backslashreplace")
    return event.model_copy(update={"content": content, "blob": None})
