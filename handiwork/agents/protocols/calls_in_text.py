"""Tool calls that a model writes as text, in the forms that models were trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, cast

from handiwork.agents.protocols.base import Reply
from handiwork.llm.strict_json import parse
from handiwork.llm.types import ToolCall

_TAGGED = re.compile(r"<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:json|tool_call)?[ \t]*\n(\s*[\[{].*?)\n?```", re.DOTALL)
_NAME_KEYS = ("name", "tool", "action", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")


def calls_in(text: str, names: Collection[str]) -> Reply | None:
    """Return the reply whose calls of the tools in ``names`` are written in the text; None if it has none.

    Known are <tool_call> tags and JSON objects, fenced or bare, with a tool's name and its arguments.
    """
    for pattern, group in ((_TAGGED, 2), (_FENCED, 1)):
        calls = [call for match in pattern.finditer(text) for call in _calls(match[group], names)]
        if calls:
            return Reply(pattern.sub("", text).strip(), tuple(calls))
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=len(text))
    calls = _calls(text[start:], names)
    return Reply(text[:start].strip(), tuple(calls)) if calls else None


def _calls(text: str, names: Collection[str]) -> list[ToolCall]:
    try:
        value = parse(text)
    except ValueError:
        return []
    objects = cast("list[object]", value) if isinstance(value, list) else [cast("object", value)]
    calls = [_call(each, names) for each in objects]
    return [call for call in calls if call is not None]


def _call(value: object, names: Collection[str]) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    if isinstance(inner := fields.get("function"), dict):
        fields = cast("dict[str, Any]", inner)
    name = next((fields[key] for key in _NAME_KEYS if fields.get(key) in names), None)
    if name is None:
        return None
    arguments = next((fields[key] for key in _ARGUMENT_KEYS if key in fields), None)
    if arguments is None:
        arguments = {key: each for key, each in fields.items() if key not in (*_NAME_KEYS, "thought")}
    return ToolCall("", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
