"""The records: facts that make State a fold over the log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from handiwork.events.base import Model, Record

CostSource = Literal["provider", "price_list", "local", "scripted", "unknown"]
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
    """What a session may spend, with its delegates; None is no limit. ``time`` is seconds of running, ``cost`` USD."""

    iterations: int | None = Field(default=100, ge=1)
    cost: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, ge=1)
    time: float | None = Field(default=None, gt=0)


class SessionStarted(Record):
    """A session begins, or goes on in a new process: what it runs with."""

    agent: str
    model: str
    sandbox: str
    workspace: str = ""
    limits: Limits = Limits()
    confirmation: Confirmation = "never"
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    resumed: bool = False


class StepStarted(Record):
    """An agent's step begins: iterations are counted by it, so that one that crashed counts too."""


class CompletionEvent(Record):
    """One answer of a model.

    ``response`` is provider-neutral: {"content": str, "tool_calls": [{"id", "name", "arguments"}], "thinking":
    [{"content", "signature", ...}]}. ``cost`` is USD, None where unknown; ``latency`` and ``first_token`` are
    seconds; ``failed_attempts`` says what went wrong before.
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
    """What the agent sees of the actions ``first`` to ``last`` is made shorter; the log keeps all of it.

    "collapse": only the first line of every long observation stays. "summary": ``summary`` stands in their place.
    "rewind": they are taken back, and ``summary`` says so. The user's first message, and actions that wait for an
    observation, stay.
    """

    first: int
    last: int
    summary: str = ""
    how: CondensationKind = "summary"


class LoopEvent(Record):
    """The agent repeats itself since action ``first``; ``content`` is what it, and the user, is told."""

    first: int
    rule: LoopRule
    times: int
    content: str


class SnapshotEvent(Record):
    """The sandbox's files and its shell's state at this moment, as tree ``tree`` of the store of snapshots.

    ``size`` is the bytes that the store grew by, ``changed`` the number of paths that are others than in the one
    before. Where ``tree`` is "" the files could not be kept, and ``problem`` says why.
    """

    tree: str
    size: int = 0
    changed: int = 0
    problem: str = ""


class ApprovalEvent(Record):
    """The user's answer about action ``action``, and the rule learnt from it, if any."""

    action: int
    allowed: bool
    comment: str = ""
    rule: str | None = None


class SettingsChanged(Record):
    """The model, with its base URL, the limits or the confirmation mode are others from here on; None is unchanged."""

    model: str | None = None
    base_url: str | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None


class NetworkAllowed(Record):
    """The sandbox may reach these hosts too from here on: names, wildcards or presets, as ``--allow-net`` has them."""

    hosts: tuple[str, ...]


class SessionWanted(Record):
    """Another process asks the one that has the session to let it go, if it only waits for the user with it."""


class EgressEvent(Record):
    """The sandbox asked for ``host``:``port`` and was let through or not, for this ``reason``."""

    host: str
    port: int
    allowed: bool
    reason: str = ""


class AgentDataEvent(Record):
    """The agent's own extra data, as a whole, replacing what was before."""

    data: dict[str, JsonValue]
