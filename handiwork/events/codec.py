"""Events to JSON objects and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pydantic_core
from pydantic import ValidationError

from handiwork.events import observation, overview, record
from handiwork.events.base import EVENT_TYPES, Event, UnknownEvent

_LOADED = (observation, overview, record)
"""These modules, and the actions that the first imports, fill EVENT_TYPES."""


def to_dict(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: {"type": name, "id": ..., ...}; default values are included."""
    return pydantic_core.from_json(to_json(event))


def to_json(event: Event) -> str:
    """Return the event as one line of JSON; a lone surrogate, which has no UTF-8, becomes U+FFFD."""
    if isinstance(event, UnknownEvent):
        return _line({**event.unknown, "id": event.id})
    try:
        fields = event.model_dump_json()
    except pydantic_core.PydanticSerializationError:
        fields = _line(event.model_dump(mode="json"))
    return f'{{"type":"{event.kind}",{fields[1:]}'


def _line(data: Mapping[str, Any]) -> str:
    return _line_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def from_dict(data: Mapping[str, Any]) -> Event:
    """Return the event of a JSON object, an UnknownEvent if its type, or its schema, is newer than this version.

    Raises pydantic.ValidationError if the fields of a known type do not fit.
    """
    fields = dict(data)
    cls = EVENT_TYPES.get(str(fields.pop("type", "")))
    schema = fields.get("schema", 1)
    if cls is None or (isinstance(schema, int) and schema > 1):
        return _unknown_event(dict(data))
    return cls.model_validate(fields)


def _unknown_event(data: dict[str, Any]) -> Event:
    """Return an UnknownEvent with the whole object; unreadable fields of its position keep their defaults."""
    position = {key: data[key] for key in ("id", "timestamp", "source", "cause", "subtask") if key in data}
    try:
        return UnknownEvent.model_validate({**position, "unknown": data})
    except ValidationError as error:
        unread = {str(detail["loc"][0]) for detail in error.errors()}
        position = {key: value for key, value in position.items() if key not in unread}
        return UnknownEvent.model_validate({**position, "unknown": data})


def read_back(session: str, number: int, text: object) -> Event:
    """Return the event of a log's row, ``number`` in its session.

    A damaged row becomes an UnknownEvent with the problem and the row's text.
    """
    try:
        if not isinstance(text, str | bytes):
            raise ValueError(f"it has no text, but {type(text).__name__}")
        event = from_json(text)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        return damaged(session, number, reason, text)
    return event if event.id == number else event.with_fields(id=number)


def is_event(text: object, number: int) -> bool:
    """Return whether a row's text is a JSON object with the id of the row."""
    try:
        data = pydantic_core.from_json(text) if isinstance(text, str) else None
    except ValueError:
        return False
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("id") == number


def damaged(session: str, number: int, reason: str, text: object) -> UnknownEvent:
    """Return the UnknownEvent that replaces an unreadable event."""
    problem = (
        f"event {number} of session {session} is damaged ({reason}): fork the session before it, "
        "restore the log from a backup, or delete the session"
    )
    content = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return UnknownEvent(id=number, unknown={"type": "DamagedEvent", "problem": problem, "text": _line_text(content)})


def _line_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def from_json(text: str | bytes) -> Event:
    """Return the event of one line of JSON; as ``from_dict``. Raises ValueError if it is not a JSON object."""
    data = pydantic_core.from_json(text)
    if not isinstance(data, dict):
        raise ValueError(f"an event is a JSON object, not {type(data).__name__}")
    return from_dict(cast("dict[str, Any]", data))
