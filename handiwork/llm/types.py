"""The input and output of models, the same for every provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from handiwork.events.base import Part
from handiwork.events.record import CostSource, ProtocolName, Usage

Role = Literal["system", "user", "assistant", "tool"]
JsonSchema = dict[str, Any]


class Grammar(str):
    """A grammar in GBNF, the notation of llama.cpp."""


ReplyForm = JsonSchema | Grammar
"""The forms to which a server can bind a reply."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool. ``arguments`` is the JSON text as the model wrote it, possibly invalid."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Message:
    """One message of a conversation; its content is parts, text, or images and sounds by blob.

    A "tool" message answers the call ``tool_call_id``. ``thinking`` holds the provider's own reasoning parts, which are
    sent back to it unchanged. An ``example`` stands before the conversation, and shows the model another one. Messages
    compare by identity: the wire form of each is built once and cached, so pass the same object again in the next call.
    """

    role: Role
    content: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thinking: tuple[dict[str, Any], ...] = ()
    example: bool = False

    @classmethod
    def text(cls, role: Role, text: str, **fields: Any) -> Message:
        """Return a message of one text part."""
        return cls(role, (Part(text=text),) if text else (), **fields)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call; ``parameters`` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: JsonSchema


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer and its usage. ``cost`` is in USD, None if unknown; times are in seconds.

    ``discarded`` are answers of failed attempts that cost tokens. ``event`` is the id of its CompletionEvent, if a
    session made the call.
    """

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    cost_source: CostSource = "unknown"
    model: str = ""
    finish_reason: str = "stop"
    latency: float = 0.0
    first_token: float | None = None
    failed_attempts: tuple[str, ...] = ()
    discarded: tuple[Completion, ...] = ()
    event: int = 0


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The vectors of texts in their order; ``completion`` has no content, and tells their usage and cost."""

    vectors: tuple[tuple[float, ...], ...]
    completion: Completion


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a model. ``window`` is its context in tokens, None if unknown.

    ``vision`` and ``hearing`` mean that it takes pictures and sounds, ``tools`` that native tool calls work, ``schema``
    that its server can bind a reply to a JSON schema, ``grammar`` to a grammar. ``protocol`` is the one to use, "auto"
    for the best of those it supports.
    """

    tools: bool = True
    schema: bool = True
    grammar: bool = False
    vision: bool = False
    hearing: bool = False
    window: int | None = None
    protocol: ProtocolName = "auto"


def is_sound(part: Part) -> bool:
    """Return whether the part is a sound."""
    return (part.media_type or "").startswith("audio/")


def with_protocol(capabilities: Capabilities, protocol: ProtocolName) -> Capabilities:
    """Return the capabilities as if the model supported this protocol best; "auto" leaves them as they are."""
    if protocol == "auto":
        return capabilities
    schema = protocol == "json" or (protocol == "native" and capabilities.schema)
    return replace(capabilities, tools=protocol == "native", schema=schema, protocol=protocol)


OnDelta = Callable[[str], None]
"""Called with each piece of text as it arrives."""


class LLM(Protocol):
    """A model that completes conversations."""

    @property
    def name(self) -> str:
        """The model string it was created from, like "anthropic:NAME" or "local:NAME"."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities, as far as known."""
        ...

    async def open(self) -> None:
        """Determine the capabilities; otherwise the first call does so. Raises LLMError."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the model's answer; with ``form`` its content is JSON of that schema, or a text of that grammar.

        Raises LLMError, whose subclass tells whether a retry makes sense, and CancelledError on interrupt.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


@runtime_checkable
class EmbeddingLLM(Protocol):
    """A model whose server has an endpoint for embeddings."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of texts. Raises LLMError."""
        ...
