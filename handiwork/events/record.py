"""The records: facts that make State a fold over the log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from handiwork.events.base import Model, Record

CostSource = Literal["provider", "price_list", "local", "scripted", "unknown"]
ProtocolName = Literal["auto", "native", "json", "text"]
"""How a model writes its actions: as native tool calls, as JSON bound to a schema, or as plain text with blocks."""
Confirmation = Literal["never", "risky", "always"]
CondensationKind = Literal["collapse", "summary", "rewind"]
LoopRule = Literal["repeat", "error", "monologue", "alternation", "waiting"]


class Usage(Model):
    """Tokens of one completion in four classes that do not overlap.

    ``input`` is neither read from nor written to a cache; the prompt has ``input + cache_read + cache_write``.
    """

    input: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write: int = Field(default=0, ge=0)

    @property
    def total(self) -> int:
        """All tokens, in and out."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Limits(Model):
    """The budget of a session with its delegates; None means no limit. ``time`` is seconds of running, ``cost`` USD."""

    iterations: int | None = Field(default=100, ge=1)
    cost: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, ge=1)
    time: float | None = Field(default=None, gt=0)


class SessionStarted(Record):
    """A session starts, or resumes in a new process, with these settings."""

    agent: str
    model: str
    sandbox: str
    workspace: str = ""
    limits: Limits = Limits()
    confirmation: Confirmation = "never"
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    resumed: bool = False


class StepStarted(Record):
    """An agent's step begins. Iterations are counted by it, so that a step that crashed counts too."""


class CompletionEvent(Record):
    """One answer of a model.

    ``response`` is provider-neutral: {"content": str, "tool_calls": [{"id", "name", "arguments"}], "thinking":
    [{"content", "signature", ...}]}. ``cost`` is in USD, None if unknown; ``latency`` and ``first_token`` are in
    seconds; ``failed_attempts`` are the errors of earlier attempts.
    """

    model: str
    response: dict[str, JsonValue]
    usage: Usage = Usage()
    cost: float | None = None
    cost_source: CostSource = "unknown"
    latency: float = 0.0
    first_token: float | None = None
    finish_reason: str = ""
    failed_attempts: tuple[str, ...] = ()


class CondensationEvent(Record):
    """The agent's view of the actions ``first`` to ``last`` becomes shorter; the log keeps all of them.

    "collapse": long observations are cut to their first line. "summary": ``summary`` replaces the actions. "rewind":
    the actions are dropped from the view, and ``summary`` is a note about it. The user's first message, and actions
    that wait for an observation, stay.
    """

    first: int
    last: int
    summary: str = ""
    how: CondensationKind = "summary"


class LoopEvent(Record):
    """The agent has repeated itself since action ``first``; ``content`` tells the agent and the user."""

    first: int
    rule: LoopRule
    times: int
    content: str


class SnapshotEvent(Record):
    """A snapshot of the sandbox's files and its shell's state: the tree ``tree`` of the snapshot store.

    ``size`` is the growth of the store in bytes, ``changed`` the number of paths changed since the snapshot before. If
    the snapshot failed, ``tree`` is "" and ``problem`` the reason.
    """

    tree: str
    size: int = 0
    changed: int = 0
    problem: str = ""


class ApprovalEvent(Record):
    """The user's answer about action ``action``, and the rule that it adds, if any."""

    action: int
    allowed: bool
    comment: str = ""
    rule: str | None = None


class SettingsChanged(Record):
    """New model with its base URL, limits or confirmation mode from this event on; None means unchanged."""

    model: str | None = None
    base_url: str | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None


class NetworkAllowed(Record):
    """The sandbox may reach these hosts from this event on: names, wildcards or presets, as in ``--allow-net``."""

    hosts: tuple[str, ...]


class SessionWanted(Record):
    """Another process asks the holder of the session's lease to release it, if the session only waits for the user."""


class EgressEvent(Record):
    """The proxy allowed or refused a connection of the sandbox to ``host``:``port``, for this ``reason``."""

    host: str
    port: int
    allowed: bool
    reason: str = ""


class AgentDataEvent(Record):
    """The agent's own extra data; it replaces the data of the event before."""

    data: dict[str, JsonValue]
