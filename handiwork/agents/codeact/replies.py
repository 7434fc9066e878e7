"""The replies of a small model: JSON objects bound to a schema, one action each."""

from __future__ import annotations

import ast
from typing import Any, cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.lines import choices, replacement
from handiwork.events.action import (
    AgentFinishAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from handiwork.events.base import Action
from handiwork.llm.strict_json import parse as parse_json
from handiwork.llm.types import JsonSchema

THOUGHT = 300
"""Maximum characters of a thought."""


def parse(reply: str, files: dict[str, str]) -> Action:
    """Return the action of a reply; an edit names a line of one of the ``files``. Raises MalformedReplyError."""
    try:
        value = parse_json(reply)
        if not isinstance(value, dict):
            raise TypeError("it is no object")
        return _action(cast("dict[str, Any]", value), files)
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedReplyError(f"Your reply is not one of the JSON objects asked for: {error}") from None


def _action(reply: dict[str, Any], files: dict[str, str]) -> Action:
    thought = str(reply.get("thought", ""))
    match reply["action"]:
        case "bash":
            return CmdRunAction(command=reply["command"], thought=thought)
        case "python":
            return IPythonRunCellAction(code=with_value(reply["code"]), thought=thought)
        case "write":
            return FileWriteAction(path=reply["path"], content=reply["content"], thought=thought)
        case "read":
            return FileReadAction(path=reply["path"], thought=thought)
        case "edit":
            path, text = reply["path"], files[reply["path"]]
            old, new = replacement(text, choices(text)[reply["old"]], reply["new"])
            return FileEditAction(path=path, old=old, new=new, thought=thought)
        case "finish":
            return AgentFinishAction(outputs={"message": reply["message"]}, thought=thought)
        case other:
            raise ValueError(f"there is no action {other!r}")


def with_value(code: str) -> str:
    """Return the cell; if it ends by assigning a name, the cell also shows the name's value.

    A small model forgets to print a value that it computed, and then invents one.
    """
    try:
        last = ast.parse(code).body[-1:]
    except (SyntaxError, ValueError):
        return code
    match last:
        case [ast.Assign(targets=[ast.Name(id=name)])]:
            return f"{code.rstrip()}\n{name}"
        case _:
            return code


def string(longest: int) -> JsonSchema:
    """Return the schema of a string of at most ``longest`` characters."""
    return {"type": "string", "maxLength": longest}


def variant(action: str, *, thought: int = THOUGHT, **fields: JsonSchema) -> JsonSchema:
    """Return the schema of one action's replies, which begin with a thought of at most ``thought`` characters."""
    properties: JsonSchema = {"thought": string(thought)} if thought else {}
    properties |= {"action": {"const": action}, **fields}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
