"""Worked examples in prompts for small windows: small models follow those better than instructions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from handiwork.agents.protocols import JSON, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.text_reply import block
from handiwork.llm.types import Message

ExampleReply = tuple[str, str, Mapping[str, Any]]
"""A thought, the name of a tool, and the arguments of its call."""


def example_messages(
    protocol: ReplyProtocol, tools: Sequence[ActionTool], example: Iterable[tuple[str, ExampleReply]]
) -> Iterator[Message]:
    """Yield each text of the example as the user's, and the reply to it as the protocol writes it."""
    by_name = {tool.name: tool for tool in tools}
    for text, (thought, name, arguments) in example:
        yield Message.text("user", text)
        if protocol is JSON:
            reply = json.dumps({"thought": thought, "action": name, **arguments})
        else:
            reply = f"{thought}\n\n{block(by_name[name], arguments)}"
        yield Message.text("assistant", reply)
