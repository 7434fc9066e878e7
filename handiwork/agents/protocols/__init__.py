"""The protocols: how a model writes its actions, and how it reads their outcomes."""

from __future__ import annotations

from handiwork.agents.protocols.base import ModelReply, ReplyProtocol
from handiwork.agents.protocols.json_reply import JsonProtocol
from handiwork.agents.protocols.native import NativeProtocol
from handiwork.agents.protocols.text_reply import TextProtocol
from handiwork.llm.types import Capabilities, Completion

NATIVE, JSON, TEXT, BOUND_TEXT = NativeProtocol(), JsonProtocol(), TextProtocol(), TextProtocol(bound=True)


def protocol_of(capabilities: Capabilities, *, short: bool = False) -> ReplyProtocol:
    """Return the best protocol for a model: native tool calls, else JSON bound to a schema, else plain text.

    A model whose protocol is text gets JSON for ``short`` arguments, which a schema can enumerate.
    """
    if capabilities.tools:
        return NATIVE
    if capabilities.schema and (short or capabilities.protocol != "text"):
        return JSON
    return BOUND_TEXT if capabilities.grammar else TEXT


def protocol_of_reply(completion: Completion) -> ReplyProtocol:
    """Return the protocol in which a completion is written."""
    if completion.tool_calls:
        return NATIVE
    return JSON if completion.content.lstrip().startswith("{") else TEXT


__all__ = ["JSON", "NATIVE", "TEXT", "ModelReply", "ReplyProtocol", "protocol_of", "protocol_of_reply"]
