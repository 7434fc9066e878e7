"""A tool together with the action that a call of it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from handiwork.agents.tools import Function, name_of, tools_of
from handiwork.agents.tools import call as call_function
from handiwork.events.base import Action
from handiwork.llm.strict_json import parse
from handiwork.llm.types import JsonSchema, Tool


@dataclass(frozen=True, slots=True)
class ActionTool:
    """A tool and the function that makes its action from a call's arguments.

    ``body`` is the argument that a reply in plain text writes between the fences of a block; a pair of arguments is
    written as a search and its replacement.
    """

    tool: Tool
    make: Callable[[dict[str, Any]], Action]
    body: str | tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def body_arguments(self) -> tuple[str, ...]:
        """The arguments that stand between the fences of a block."""
        return (self.body,) if isinstance(self.body, str) else self.body or ()


def parameters(required: Sequence[str], **properties: tuple[str, str] | JsonSchema) -> JsonSchema:
    """Return the JSON schema of a tool's arguments; a property is a schema, or its (type, description)."""
    return {
        "type": "object",
        "properties": {
            name: spec if isinstance(spec, dict) else {"type": spec[0], "description": spec[1]}
            for name, spec in properties.items()
        },
        "required": list(required),
        "additionalProperties": False,
    }


def typed(schema: JsonSchema, text: str) -> Any:
    """Return an argument that is written as text as its schema has it; the text itself if it does not fit.

    A text that is no JSON is the one item of a list of texts.
    """
    if schema.get("type", "string") == "string":
        return text
    try:
        return parse(text.lower() if schema["type"] == "boolean" else text)
    except ValueError:
        return [text] if schema.get("items") == {"type": "string"} else text


def with_functions(tools: Sequence[ActionTool], functions: Sequence[Function]) -> tuple[ActionTool, ...]:
    """Return the tools and an agent's own functions and Action classes as tools.

    Raises TypeError for a function that cannot be a tool.
    """
    names = {tool.name for tool in tools}
    if duplicates := [name for name in map(name_of, functions) if name in names]:
        raise TypeError(f"{duplicates[0]} cannot be a tool: there is one of this name already.")
    own = zip(tools_of(functions), functions, strict=True)
    return *tools, *(ActionTool(tool, partial(call_function, function)) for tool, function in own)
