"""Demonstrations: the ``history`` of an earlier task in a ``.traj`` file of SWE-agent, or a YAML file in its shape.

SWE-agent's own rules: system messages are left out; a demonstration is one message by ``demonstration_template``, or
with ``put_demos_in_history`` its messages as they were.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from handiwork.agents.interface import problems_text
from handiwork.agents.swe_agent.bundles import find_file
from handiwork.agents.swe_agent.templates import SWEConfigError
from handiwork.llm.types import Message, ToolCall

SHIPPED = Path(__file__).parent / "prompts"
LARGEST = 5_000_000
"""Bytes of a demonstration's file."""


class _Text(BaseModel):
    text: str = ""


class _Function(BaseModel):
    name: str
    arguments: str = "{}"


class _Call(BaseModel):
    id: str
    function: _Function


class DemonstrationMessage(BaseModel):
    """A message of the earlier task; ``action`` is the command of a reply."""

    role: str
    content: str | tuple[_Text, ...] | None = ""
    action: str | None = ""
    tool_calls: tuple[_Call, ...] | None = None

    @property
    def content_text(self) -> str:
        """The text of the content, "" for none."""
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content or ())

    @property
    def text(self) -> str:
        """The text of the content, with the command of a reply that was a tool call."""
        command = (self.action or "").strip()
        text = self.content_text
        return f"{text}\n```\n{command}\n```".lstrip() if self.tool_calls and command else text


class Demonstration(BaseModel):
    """An earlier task's messages, without those of the system."""

    history: tuple[DemonstrationMessage, ...]

    @property
    def has_calls(self) -> bool:
        """Whether its replies call tools."""
        return any(message.tool_calls for message in self.history)

    @property
    def text(self) -> str:
        """All of it, for a template."""
        return "\n".join(message.text for message in self.history)

    def messages(self, *, native: bool) -> Iterator[Message]:
        """Yield its messages; tool calls with an outcome stay tool calls if ``native``."""
        call: ToolCall | None = None
        for entry, following in zip_longest(self.history, self.history[1:]):
            if entry.role != "assistant":
                if call is None:
                    yield Message.text("user", entry.text, example=True)
                else:
                    yield Message.text("tool", entry.text, tool_call_id=call.id, example=True)
                call = None
            elif native and entry.tool_calls and following is not None and following.role == "tool":
                called = entry.tool_calls[0]
                call = ToolCall(called.id, called.function.name, called.function.arguments)
                yield Message.text("assistant", entry.content_text, tool_calls=(call,), example=True)
            else:
                yield Message.text("assistant", entry.text, example=True)


def load_demonstrations(names: Sequence[str], near: Path) -> list[Demonstration]:
    """Return the demonstrations of files, given from the folder ``near`` or one above it, or shipped.

    Raises SWEConfigError.
    """
    return [_load(name, near) for name in names]


def _load(name: str, near: Path) -> Demonstration:
    path = find_file(name, near) or SHIPPED / Path(name).name
    if not path.is_file():
        raise SWEConfigError(f"there is no demonstration {name} near {near}")
    if path.stat().st_size > LARGEST:
        raise SWEConfigError(f"the demonstration {path} has more than {LARGEST:,} bytes")
    try:
        text = path.read_text()
        value: Any = yaml.safe_load(text) if path.suffix in (".yaml", ".yml") else json.loads(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SWEConfigError(f"{path} cannot be read: {error}") from None
    try:
        whole = Demonstration.model_validate(value)
    except ValidationError as error:
        raise SWEConfigError(f"{path} is no trajectory of SWE-agent: {problems_text(error)}") from None
    return Demonstration(history=tuple(message for message in whole.history if message.role != "system"))
