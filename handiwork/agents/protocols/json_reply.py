"""Replies as JSON objects, which the server binds to a schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.base import ModelReply
from handiwork.agents.protocols.native import calls_in
from handiwork.events.base import Part
from handiwork.llm.strict_json import parse
from handiwork.llm.types import JsonSchema, Message, ReplyForm, Tool, ToolCall

THOUGHT = 600
"""Maximum characters of a thought."""


class JsonProtocol:
    """One JSON object a reply: a thought, the name of one tool as ``action``, and its arguments."""

    name = "json"

    def instructions(self, tools: Sequence[ActionTool], *, compact: bool) -> str:
        """Return the list of actions with their arguments."""
        lines = ["Each reply is one JSON object: a short thought, and one action with its arguments:"]
        for tool in tools:
            arguments = "".join(_argument(tool.tool, name) for name in tool.tool.parameters["properties"])
            description = tool.tool.description.split(". ")[0].rstrip(".") if compact else tool.tool.description
            lines.append(f'{{"thought": ..., "action": "{tool.name}"{arguments}}}  {description}')
        return "\n".join(lines)

    def request(self, tools: Sequence[ActionTool]) -> tuple[Sequence[Tool], ReplyForm | None]:
        """Return the schema: any of the tools, with its arguments."""
        return (), {"anyOf": [_variant(tool.tool) for tool in tools]}

    def read(self, content: str, calls: Sequence[ToolCall], tools: Sequence[ActionTool]) -> ModelReply:
        """Return the reply. Raises MalformedReplyError for a text that is not one of the objects."""
        try:
            value = parse(content)
            if not isinstance(value, dict):
                raise TypeError("it is no object")
            fields = cast("dict[str, Any]", value)
            thought, name = str(fields.pop("thought", "")), str(fields.pop("action"))
        except (ValueError, KeyError, TypeError) as error:
            if reply := calls_in(content, tools):
                return reply
            raise MalformedReplyError(f"Your reply is not one of the JSON objects asked for: {error}") from None
        return ModelReply(thought, (ToolCall("", name, json.dumps(fields)),))

    def reply(self, reply: ModelReply) -> Message:
        """Return the assistant's message: the object of the first call."""
        if not reply.calls:
            return Message.text("assistant", reply.text)
        call = reply.calls[0]
        fields = {"thought": reply.text[:THOUGHT], "action": call.name, **_arguments(call)}
        return Message.text("assistant", json.dumps(fields, ensure_ascii=False))

    def outcome(self, text: str, call: str | None, images: tuple[Part, ...] = ()) -> Message:
        """Return a user message."""
        return Message("user", (Part(text=text), *images))


def _argument(tool: Tool, name: str) -> str:
    optional = "" if name in tool.parameters.get("required", ()) else " (optional)"
    return f', "{name}": ...{optional}'


def _variant(tool: Tool) -> JsonSchema:
    properties: JsonSchema = {"thought": {"type": "string", "maxLength": THOUGHT}, "action": {"const": tool.name}}
    required = ["thought", "action", *tool.parameters.get("required", ())]
    return {
        "type": "object",
        "properties": properties | tool.parameters["properties"],
        "required": required,
        "additionalProperties": False,
    } | {key: tool.parameters[key] for key in ("$defs",) if key in tool.parameters}


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value = parse(call.arguments or "{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
