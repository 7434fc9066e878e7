"""Check and bound the observation that a sandbox returns for an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from handiwork.events.base import EVENT_TYPES, Action, Event, Observation
from handiwork.events.observation import ErrorObservation

SANDBOX_ERRORS = frozenset(
    {
        *("bad_command", "bad_edit", "bad_range", "bad_text", "browser", "busy", "denied", "failed", "is_directory"),
        "is_link",
        *("no_browser", "no_job", "no_notebook", "no_program", "no_shell", "not_directory", "not_found"),
        *("not_regular", "not_text", "not_unique", "too_long", "too_many_jobs", "unsupported"),
    }
)
"""The ``error_id`` that a sandbox may give; all others are the platform's own, like "sandbox_lost"."""

TEXT_LIMIT = 80_000
"""Characters of a text, or of all texts in a list; 16 KiB that are no UTF-8 take 65,536."""

LIST_LIMIT = 100
"""Items of a list."""

NUMBER_LIMIT = 1 << 53
"""Numbers below this are exact wherever JSON is read."""

_OWN = frozenset((*Event.model_fields, "schema", "type", "blob", "limit"))
"""What the platform alone says of an observation."""


class AnswerError(Exception):
    """The sandbox's reply is no observation of the action; the text gives the reason."""


def answer(action: Action, said: Mapping[str, object], found: Mapping[str, Any]) -> Observation:
    """Return the sandbox's observation of the action, from its fields ``said`` and the platform's fields ``found``.

    The sandbox cannot set the event's position in the log; texts, lists and numbers are bounded. Raises AnswerError.
    """
    kind = said.get("type")
    cls = EVENT_TYPES.get(str(kind), Event)
    if not issubclass(cls, Observation) or not (type(action) in cls.answers or cls is ErrorObservation):
        raise AnswerError(f"a {action.kind} is not answered by {_shown(kind)}")
    error_id = said.get("error_id")
    if cls is ErrorObservation and not (isinstance(error_id, str) and error_id in SANDBOX_ERRORS):
        raise AnswerError(f"a sandbox gives no error {_shown(error_id)}")
    own = {**cls.repeated(action), **found}
    fields = {name: _bounded(name, value) for name, value in said.items() if name not in _OWN and name not in own}
    try:
        return cls.model_validate({**fields, **own})
    except ValidationError as error:
        name = ".".join(map(str, error.errors(include_input=False, include_url=False)[0]["loc"]))
        raise AnswerError(f"the field {_shown(name)} does not fit a {cls.kind}") from None


def _bounded(name: str, value: object) -> object:
    """Return the value, cut to the size an event may hold. Raises AnswerError for a value that no field can hold."""
    match value:
        case str():
            return value[:TEXT_LIMIT]
        case None | bool():
            return value
        case int() if abs(value) < NUMBER_LIMIT:
            return value
        case list():
            return _bounded_list(name, cast("list[object]", value))
        case _:
            raise AnswerError(f"the field {_shown(name)} holds what no observation does")


def _bounded_list(name: str, items: list[object]) -> list[str]:
    kept: list[str] = []
    left = TEXT_LIMIT
    for item in items[:LIST_LIMIT]:
        if not isinstance(item, str):
            raise AnswerError(f"the field {_shown(name)} holds what no observation does")
        kept.append(item[:left])
        left -= len(kept[-1])
    return kept


def _shown(value: object) -> str:
    return repr(value[:50]) if isinstance(value, str) else f"a {type(value).__name__}"
