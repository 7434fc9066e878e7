"""Prompts: Jinja templates beside the agents; golden files in the tests pin their rendered text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from handiwork.agents.protocols import NATIVE, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import Prompt
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.llm.types import Message

Example = Callable[[ReplyProtocol, Sequence[ActionTool]], Iterable[Message]]
"""Returns the messages of a worked example."""


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


def render(name: str, **values: Any) -> str:
    """Return the prompt ``AGENT/NAME``: the template ``AGENT/prompts/NAME.j2`` rendered with the values."""
    agent, _, prompt = name.partition("/")
    return _environment().get_template(f"{agent}/prompts/{prompt}.j2").render(values).strip()


def system_prompt(
    name: str, cache: MessageCache, state: State, tools: Sequence[ActionTool], example: Example
) -> Prompt:
    """Return the system prompt of a template, with the example for small windows of models without tool calls."""
    descriptions = tuple(tool.tool for tool in tools)

    def prompt(protocol: ReplyProtocol, small: bool) -> Sequence[Message]:
        def build(*_: object) -> Iterable[Message]:
            instructions, native = protocol.instructions(tools, compact=small), protocol is NATIVE
            # Without the folder, a local model reads the compact prompt once for all folders.
            folder = "" if small else state.workspace
            yield Message.text("system", render(name, workspace=folder, instructions=instructions, native=native))
            if small and not native:
                yield from example(protocol, tools)

        return cache.get_or_build(-1, (protocol.name, small, state.workspace, descriptions), build)

    return prompt
