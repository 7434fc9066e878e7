"""The interface of a protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.events.base import Part
from handiwork.llm.types import Message, ReplyForm, Tool, ToolCall


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply: its ``text`` for the user, or its thought beside ``calls``; a call without an id has ""."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class ReplyProtocol(Protocol):
    """Writes tools into a prompt, and reads the model's calls of them from its replies."""

    @property
    def name(self) -> str:
        """The word of the setting ``protocol``."""
        ...

    def instructions(self, tools: Sequence[ActionTool], *, compact: bool) -> str:
        """Return the part of the system prompt that explains how to call tools; "" if the request itself does."""
        ...

    def request(self, tools: Sequence[ActionTool]) -> tuple[Sequence[Tool], ReplyForm | None]:
        """Return the tools and the form of the reply to pass to the model."""
        ...

    def read(self, content: str, calls: Sequence[ToolCall], tools: Sequence[ActionTool]) -> ModelReply:
        """Return the reply in a completion. Raises MalformedReplyError."""
        ...

    def reply(self, reply: ModelReply) -> Message:
        """Return the assistant's message of a reply, written as this protocol writes it."""
        ...

    def outcome(self, text: str, call: str | None, images: tuple[Part, ...] = ()) -> Message:
        """Return the message that tells the model the outcome of the call with this id."""
        ...
