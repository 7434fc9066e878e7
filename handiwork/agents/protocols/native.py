"""Native tool calls, also those that a model writes as text, in the forms that models were trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.protocols.action_tools import ActionTool, typed
from handiwork.agents.protocols.base import ModelReply
from handiwork.events.base import Part
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Message, ReplyForm, Tool, ToolCall

_MARKER = re.compile(r"\[TOOL_CALLS\]|<\|python_tag\|>|</?(?:tool_call|function_call)s?>")
"""Tokens around calls, which some servers leave in the text."""

_FUNCTION = re.compile(
    r"""<(?:function=|invoke\ name=")([\w.-]+)"?>\n?(.*?)
    (?:^[ \t]*</(?:function|invoke)>|</parameter>\s*</(?:function|invoke)>|(?<=\})\s*</(?:function|invoke)>
    |</(?:function|invoke)>(?=\s*(?:\Z|</?(?:tool_call|function_call|function=|invoke\b)))|\Z)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
"""A call in tags; a file in its arguments may have the same tags in the middle of a line."""

_PARAMETER = re.compile(
    r"""<parameter(?:=| name=")([\w.-]+)"?>\n?(.*?)\n?(?:</parameter>|(?=<parameter(?:=| name="))|\Z)""", re.DOTALL
)
_TAGGED = re.compile(r"<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:json|tool_call)?[ \t]*\n(\s*[\[{].*?)\n?```", re.DOTALL)
_OPENING = re.compile(r"""<(?:tool_call|function_call)>|<function=[\w.-]+>|<invoke name="[\w.-]+">""")
_CLOSING = re.compile(r"</(?:tool_call|function_call|function|invoke)>\s*\Z")
_DECODER = json.JSONDecoder(strict=False)
_SEPARATORS = " \t\r\n;,"
_NAME_KEYS = ("name", "tool", "action", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")


class NativeProtocol:
    """The provider's own form of tools and calls."""

    name = "native"

    def instructions(self, tools: Sequence[ActionTool], *, compact: bool) -> str:
        """Return "": the request holds the tools."""
        return ""

    def request(self, tools: Sequence[ActionTool]) -> tuple[Sequence[Tool], ReplyForm | None]:
        """Return the tools."""
        return [tool.tool for tool in tools], None

    def read(self, content: str, calls: Sequence[ToolCall], tools: Sequence[ActionTool]) -> ModelReply:
        """Return the reply; calls that the model wrote as text count as well. Raises MalformedReplyError."""
        if calls:
            return ModelReply(content, tuple(calls))
        if not content.strip():
            raise MalformedReplyError("Your reply was empty. Call a tool, or `finish`.")
        return calls_in(content, tools) or ModelReply(content)

    def reply(self, reply: ModelReply) -> Message:
        """Return the assistant's message with its calls."""
        return Message.text("assistant", reply.text, tool_calls=tuple(call for call in reply.calls if call.id))

    def outcome(self, text: str, call: str | None, images: tuple[Part, ...] = ()) -> Message:
        """Return the tool's message; the outcome of a call without an id is a user message."""
        if call is None:
            return Message("user", (Part(text=text), *images))
        return Message("tool", (Part(text=text), *images), tool_call_id=call)


def calls_in(text: str, tools: Sequence[ActionTool]) -> ModelReply | None:
    """Return the reply whose calls of the tools are written in the text; None if it has none.

    Known are tags of functions and parameters, <tool_call> tags, and JSON objects, fenced or bare, with a tool's name
    and its arguments. Raises MalformedReplyError for tags without a call of a tool: none of the calls is carried out.
    """
    by_name = {tool.name: tool for tool in tools}
    found = _FUNCTION.finditer(text)
    functions = [match for match in found if match[1] in by_name or _begins_line(text, match.start())]
    if functions:
        if unknown := next((match[1] for match in functions if match[1] not in by_name), None):
            raise MalformedReplyError(f"There is no tool {unknown!r}. There are: {', '.join(by_name)}.")
        calls = [ToolCall("", match[1], _arguments(match[2], by_name[match[1]])) for match in functions]
        return ModelReply(_MARKER.sub("", _FUNCTION.sub("", text)).strip(), tuple(calls))
    names = set(by_name)
    tagged = [match[2] for match in _TAGGED.finditer(text) if match[2].startswith(("{", "["))]
    if not all(_calls(body, names) for body in tagged):
        raise MalformedReplyError(
            "None of the calls was carried out: the text in <tool_call> tags must be a JSON object with the name of a "
            f"tool and its arguments. There are: {', '.join(by_name)}."
        )
    for pattern, group in ((_TAGGED, 2), (_FENCED, 1)):
        calls = [call for match in pattern.finditer(text) for call in _calls(match[group], names)]
        if calls:
            return ModelReply(pattern.sub("", text).strip(), tuple(calls))
    text = _MARKER.sub("", text)
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=len(text))
    calls = _calls(text[start:], names)
    return ModelReply(text[:start].strip(), tuple(calls)) if calls else None


def _begins_line(text: str, position: int) -> bool:
    return text[:position].rstrip(" \t")[-1:] in ("", "\n", ">")


def has_open_call(text: str) -> bool:
    """Return whether the text has the tags of a call, and does not end with them."""
    return _OPENING.search(text) is not None and _CLOSING.search(text) is None


def _arguments(body: str, tool: ActionTool) -> str:
    """Return the arguments in the tags of a function: its parameters, or else a JSON object, as it is."""
    parameters = _PARAMETER.findall(body)
    if not parameters:
        return body.strip() or "{}"
    properties = tool.tool.parameters["properties"]
    return json.dumps({name: typed(properties.get(name, {}), value) for name, value in parameters})


def _calls(text: str, names: Collection[str]) -> list[ToolCall]:
    """Return the calls in a text that is JSON values one after the other, and nothing else."""
    calls: list[ToolCall | None] = []
    position, text = 0, text.strip()
    try:
        while position < len(text):
            end = _DECODER.raw_decode(text, position)[1]
            # Models write line breaks into strings as they are.
            value = parse(text[position:end], strict=False)
            objects = cast("list[object]", value) if isinstance(value, list) else [cast("object", value)]
            calls += [_call(each, names) for each in objects]
            position = len(text) - len(text[end:].lstrip(_SEPARATORS))
    except (ValueError, RecursionError):
        return []
    return [call for call in calls if call is not None]


def _call(value: object, names: Collection[str]) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    if isinstance(inner := fields.get("function"), dict):
        fields = cast("dict[str, Any]", inner)
    name = next((one for key in _NAME_KEYS if isinstance(one := fields.get(key), str) and one in names), None)
    if name is None:
        return None
    arguments = next((fields[key] for key in _ARGUMENT_KEYS if key in fields), None)
    if arguments is None:
        arguments = {key: each for key, each in fields.items() if key not in (*_NAME_KEYS, "thought")}
    return ToolCall("", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
