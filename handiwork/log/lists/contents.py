"""The texts of a session that a search reads: messages, commands, code and results, without the rest of the events."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, insert, select

from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    CmdRunAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Event
from handiwork.events.codec import read_back
from handiwork.log.schema import contents, events, sessions

LONGEST = 10_000
"""Characters of a text that are kept for a search."""
_SEARCHED = (AgentDelegateAction, AgentFinishAction, CmdRunAction, IPythonRunCellAction, MessageAction)
_BATCH = 1000


def text_of(event: Event) -> str:
    """Return the event's text for a search; "" for an event that no search reads."""
    match event:
        case MessageAction(content=text) | CmdRunAction(command=text) | IPythonRunCellAction(code=text):
            return text[:LONGEST]
        case AgentDelegateAction(inputs=fields) | AgentFinishAction(outputs=fields):
            return "\n".join(value for value in fields.values() if isinstance(value, str))[:LONGEST]
        case _:
            return ""


def holds(text: str) -> ColumnElement[bool]:
    """Return the condition that a session's own events hold the text; ASCII letters match in both cases."""
    # SQLite's LIKE ignores the case of ASCII letters by itself, and is several times faster than with lower().
    found = select(contents.c.session).where(contents.c.text.contains(text, autoescape=True))
    return sessions.c.id.in_(found)


def fill(connection: Connection) -> None:
    """Store the texts of a log that was written before there were any."""
    kinds = [kind.__name__ for kind in _SEARCHED]
    query = select(events.c.session, events.c.id, events.c.json).where(events.c.type.in_(kinds))
    for rows in connection.execute(query).partitions(_BATCH):
        texts = [(row.session, row.id, text_of(read_back(row.session, row.id, row.json))) for row in rows]
        if values := [{"session": session, "id": number, "text": text} for session, number, text in texts if text]:
            connection.execute(insert(contents), values)
