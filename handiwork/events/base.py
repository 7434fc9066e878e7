"""The base classes of events: frozen, with a closed set of fields, and at one position in a session's log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

Source = Literal["agent", "user", "environment"]


def utc_now() -> datetime:
    """Return the present moment, with its time zone."""
    return datetime.now(UTC)


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A datetime that was given with its time zone, in UTC."""


class Model(BaseModel):
    """A frozen value with a closed set of fields; unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,  # JSON has neither
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )


class Part(Model):
    """One part of a message: text, or an image or sound kept as a blob.

    Exactly one of ``text`` and ``blob`` is set; ``blob`` is a SHA-256 in hex and needs ``media_type``.
    """

    text: str | None = None
    blob: str | None = None
    media_type: str | None = None


EVENT_TYPES: dict[str, type[Event]] = {}
"""Every event type that can be written, by its name; a subclass joins it when it is defined."""

_BASES = frozenset(("Action", "Observation", "Record", "UnknownEvent"))


class Event(Model):
    """An entry of a session's log.

    ``id`` is the position in the log, from 1; 0 means not appended yet. ``cause`` is the id of the action
    that an observation answers. ``subtask`` is the id of the action that opened the subtask; 0 is the root.
    ``timestamp`` is UTC.
    """

    kind: ClassVar[str] = "Event"

    id: int = Field(default=0, ge=0)
    schema_version: int = Field(default=1, alias="schema", ge=1)
    timestamp: Moment = Field(default_factory=utc_now)
    source: Source = "environment"
    cause: int | None = None
    subtask: int = 0

    model_config = ConfigDict(
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,  # a process uses few of the event types, and a schema takes 1 ms
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = cls.__name__
        existing = EVENT_TYPES.get(cls.kind)
        if existing is not None and existing.__module__.startswith("handiwork.events."):
            raise TypeError(f"there is an event {cls.kind} already: give the class another name")
        if cls.__name__ not in _BASES:
            EVENT_TYPES[cls.kind] = cls

    def with_fields(self, **fields: Any) -> Self:
        """Return this event with ``id``, ``timestamp``, ``source``, ``cause`` or ``subtask`` set, unvalidated."""
        return self.model_copy(update=fields)


class Action(Event):
    """A request of the agent or the user.

    ``thought`` is the model's reasoning, ``completion`` the id of the CompletionEvent that has the action, and
    ``tool_call_id`` the model's id of the call. A ``runnable`` action is executed in the sandbox.
    """

    runnable: ClassVar[bool] = False

    source: Source = "agent"
    thought: str = ""
    completion: int | None = None
    tool_call_id: str | None = None

    async def execute(self, run: Run) -> Observation:
        """Execute the action: the sandbox's server does, unless a subclass composes other actions that it ``run``s."""
        return await run(self)


class Observation(Event):
    """The result of an action.

    ``content`` is the whole text, or its head if the text is too large; then ``tail`` is its end, ``size`` the length
    of the whole in bytes and ``blob`` the handle (SHA-256 in hex) of the blob that holds it. ``answers`` are the
    actions that the sandbox's server answers with this observation, ``repeats`` the fields copied from the action.
    """

    answers: ClassVar[tuple[type[Action], ...]] = ()
    repeats: ClassVar[tuple[str, ...]] = ()

    content: str = ""
    tail: str = ""
    size: int = Field(default=0, ge=0)
    blob: str | None = None

    @classmethod
    def repeated(cls, action: Action) -> dict[str, Any]:
        """Return the fields that repeat the action; a sandbox cannot change them."""
        return {name: getattr(action, name) for name in cls.repeats}

    @property
    def text(self) -> str:
        """The text that the event holds, with a note of the omitted bytes between head and tail."""
        if self.blob is None:
            return self.content
        omitted = self.size - len(self.content.encode()) - len(self.tail.encode())
        gap = f"[... {omitted} bytes left out of {self.size}; all of it is {self.blob[:12]} ...]"
        return f"{self.content}\n{gap}\n{self.tail}"


Run = Callable[[Action], Awaitable[Observation]]
"""Runs an action in the sandbox and returns its observation. Raises SandboxError."""


class Record(Event):
    """A fact about the session that is neither an action nor an observation, kept so that State is a fold."""


class UnknownEvent(Event):
    """An event whose type this version does not know, kept unchanged: ``unknown`` is its whole JSON object."""

    unknown: dict[str, JsonValue]
