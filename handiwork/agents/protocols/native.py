"""Native tool calls."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.base import Reply
from handiwork.agents.protocols.calls_in_text import calls_in
from handiwork.events.base import Part
from handiwork.llm.types import JsonSchema, Message, Tool, ToolCall


class NativeProtocol:
    """The provider's own form of tools and calls."""

    name = "native"

    def instructions(self, tools: Sequence[ActionTool], *, compact: bool) -> str:
        """Return "": the request holds the tools."""
        return ""

    def request(self, tools: Sequence[ActionTool]) -> tuple[Sequence[Tool], JsonSchema | None]:
        """Return the tools."""
        return [tool.tool for tool in tools], None

    def read(self, content: str, calls: Sequence[ToolCall], tools: Sequence[ActionTool]) -> Reply:
        """Return the reply; calls that the model wrote as text count as well. Raises MalformedReplyError."""
        if calls:
            return Reply(content, tuple(calls))
        if not content.strip():
            raise MalformedReplyError("Your reply was empty. Call a tool, or `finish`.")
        return calls_in(content, {tool.name for tool in tools}) or Reply(content)

    def reply(self, reply: Reply) -> Message:
        """Return the assistant's message with its calls."""
        return Message.text("assistant", reply.text, tool_calls=tuple(call for call in reply.calls if call.id))

    def outcome(self, text: str, call: str | None, images: tuple[Part, ...] = ()) -> Message:
        """Return the tool's message; the outcome of a call without an id is a user message."""
        if call is None:
            return Message("user", (Part(text=text), *images))
        return Message("tool", (Part(text=text), *images), tool_call_id=call)
