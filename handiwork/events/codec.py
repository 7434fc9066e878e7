"""Events to JSON objects and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from handiwork.events import action, observation, record
from handiwork.events.base import Event, UnknownEvent


def _types() -> dict[str, type[Event]]:
    found: dict[str, type[Event]] = {}
    for module in (action, observation, record):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Event) and value.__module__ == module.__name__:
                found[name] = value
    return found


EVENT_TYPES: dict[str, type[Event]] = _types()
"""Every event type that can be written, by its name."""


def to_dict(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: {"type": name, "id": ..., ...}; defaults that say nothing are kept."""
    if isinstance(event, UnknownEvent):
        return {**event.unknown, "id": event.id}
    return {"type": event.kind, **event.model_dump(mode="json")}


def to_json(event: Event) -> str:
    """Return the event as one line of JSON."""
    return json.dumps(to_dict(event), ensure_ascii=False, separators=(",", ":"))


def from_dict(data: Mapping[str, Any]) -> Event:
    """Return the event of a JSON object, an UnknownEvent if its type, or its schema, is newer than this version.

    Raises pydantic.ValidationError where a known type has fields that do not fit.
    """
    fields = dict(data)
    cls = EVENT_TYPES.get(str(fields.pop("type", "")))
    if cls is None or fields.get("schema", 1) > 1:
        place = {key: data[key] for key in ("id", "timestamp", "source", "cause", "subtask") if key in data}
        return UnknownEvent.model_validate({**place, "unknown": dict(data)})
    return cls.model_validate(fields)


def from_json(text: str | bytes) -> Event:
    """Return the event of one line of JSON; as ``from_dict``."""
    return from_dict(json.loads(text))
