"""Check and bound the observation that a sandbox returns for an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from handiwork.events.action import HookRunAction
from handiwork.events.base import EVENT_TYPES, Action, Event, Observation
from handiwork.events.observation import ErrorObservation

SANDBOX_ERRORS = frozenset(
    {
        *("bad_command", "bad_edit", "bad_range", "bad_text", "browser", "busy", "denied", "failed", "is_directory"),
        "is_link",
        *("no_browser", "no_job", "no_notebook", "no_program", "no_shell", "not_directory", "not_found"),
        *("not_named", "not_regular", "not_text", "not_unique", "too_long", "too_many_jobs", "unsupported"),
    }
)
"""The ``error_id`` that a sandbox may give; all others are the platform's own, like "sandbox_lost"."""

TEXT_LIMIT = 80_000
"""Characters of a text, or of all texts in a list; 16 KiB of invalid UTF-8 take 65,536."""

HOOK_LIMIT = 262_144
"""Characters of a hook's text: the platform's own hooks list files and matches, of which none may be missing."""

LIST_LIMIT = 100
"""Items of a list."""

NUMBER_LIMIT = 1 << 53
"""Numbers below this are exact in every JSON reader."""

_PLATFORM_FIELDS = frozenset((*Event.model_fields, "schema", "type", "blob", "limit"))
"""Fields of an observation that only the platform sets."""


class AnswerError(Exception):
    """The sandbox's reply is not an observation of the action; the text gives the reason."""


def answer(action: Action, reply: Mapping[str, object], platform_fields: Mapping[str, Any]) -> Observation:
    """Return the observation of the action, from the fields of the sandbox's ``reply`` and the ``platform_fields``.

    The sandbox cannot set the event's position in the log; texts, lists and numbers are bounded. Raises AnswerError.
    """
    kind = reply.get("type")
    cls = EVENT_TYPES.get(str(kind), Event)
    if not issubclass(cls, Observation) or not (type(action) in cls.answers or cls is ErrorObservation):
        raise AnswerError(f"a {action.kind} is not answered by {_describe(kind)}")
    error_id = reply.get("error_id")
    if cls is ErrorObservation and not (isinstance(error_id, str) and error_id in SANDBOX_ERRORS):
        raise AnswerError(f"a sandbox gives no error {_describe(error_id)}")
    fixed = {**cls.repeated(action), **platform_fields}
    limit = HOOK_LIMIT if isinstance(action, HookRunAction) else TEXT_LIMIT
    given = {name: value for name, value in reply.items() if name not in _PLATFORM_FIELDS and name not in fixed}
    fields = {name: _bound(name, value, limit) for name, value in given.items()}
    try:
        return cls.model_validate({**fields, **fixed})
    except ValidationError as error:
        name = ".".join(map(str, error.errors(include_input=False, include_url=False)[0]["loc"]))
        raise AnswerError(f"the field {_describe(name)} does not fit a {cls.kind}") from None


def _bound(name: str, value: object, limit: int) -> object:
    """Return the value, cut to the size an event may hold. Raises AnswerError for a value that no field can hold."""
    match value:
        case str():
            return value[:limit]
        case None | bool():
            return value
        case int() if abs(value) < NUMBER_LIMIT:
            return value
        case list():
            return _bound_list(name, cast("list[object]", value))
        case _:
            raise AnswerError(f"the field {_describe(name)} holds what no observation does")


def _bound_list(name: str, items: list[object]) -> list[str]:
    texts: list[str] = []
    remaining = TEXT_LIMIT
    for item in items[:LIST_LIMIT]:
        if not isinstance(item, str):
            raise AnswerError(f"the field {_describe(name)} holds what no observation does")
        texts.append(item[:remaining])
        remaining -= len(texts[-1])
    return texts


def _describe(value: object) -> str:
    return repr(value[:50]) if isinstance(value, str) else f"a {type(value).__name__}"
