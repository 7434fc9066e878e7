"""A task's history as a conversation, in the protocol of the model that reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import cast

from pydantic import JsonValue

from handiwork.agents.history import is_from_user
from handiwork.agents.protocols import NATIVE, ModelReply, ReplyProtocol
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import AgentThinkAction, CmdRunAction, FileReadAction, MessageAction
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import ErrorObservation, IPythonRunCellObservation, MCPCallObservation
from handiwork.events.overview import WorkspaceOverviewAction
from handiwork.events.record import CompletionEvent
from handiwork.llm.types import Message, ToolCall

LIMIT, SMALL_LIMIT = 16_000, 4_000
"""Maximum characters of an observation, in general and for a small window."""

_WITH_IMAGES = (IPythonRunCellObservation, MCPCallObservation)


def conversation(
    state: State,
    cache: MessageCache,
    protocol: ReplyProtocol,
    prompt: Sequence[Message],
    *,
    vision: bool = False,
    limit: int = LIMIT,
) -> list[Message]:
    """Return the ``prompt`` and the conversation after it; ``vision`` includes the pictures of cells."""
    cache.begin()
    messages = [*prompt]
    replied: int | None = None
    for action, observation in _context_first(state):
        completion = state.completions.get(action.completion or 0)
        first = completion is not None and completion.id != replied
        if completion is not None:
            replied = completion.id
        source = (protocol.name, action, observation, completion, first, vision, limit)
        messages += cache.get_or_build(action.id, (protocol, source), _messages)
    return messages


def _context_first(state: State) -> Iterator[tuple[Action, Observation | None]]:
    """Yield the history with what the agent read unasked before the message after which it did, instead of after it.

    That is the overview, and the context of a micro agent. Small models best follow the text that they read last.
    """
    at = 0
    while at < len(state.history):
        message, rest = state.history[at], state.history[at + 1 :] if is_from_user(state.history[at][0]) else []
        # Messages of the environment, like knowledge, may stand between the message and the context.
        leading = list(takewhile(lambda step: _is_context(step[0]) or _is_knowledge(step[0]), rest))
        yield from (step for step in leading if _is_context(step[0]))
        yield message
        yield from (step for step in leading if not _is_context(step[0]))
        at += 1 + len(leading)


def _is_knowledge(action: Action) -> bool:
    return isinstance(action, MessageAction) and action.source == "environment"


def _is_context(action: Action) -> bool:
    is_unasked = action.source == "agent" and action.completion is None
    return is_unasked and isinstance(action, WorkspaceOverviewAction | CmdRunAction)


def calls_of(completion: CompletionEvent) -> tuple[ToolCall, ...]:
    """Return the native tool calls of a completion."""
    calls = cast("list[dict[str, str]]", completion.response.get("tool_calls") or [])
    return tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in calls)


def content_of(completion: CompletionEvent) -> str:
    """Return the text of a completion."""
    return cast("str", completion.response.get("content") or "")


def limit_of(action: Action, limit: int) -> int:
    """Return the maximum characters of the action's observation: an overview has a budget of its own."""
    return max(limit, action.budget) if isinstance(action, WorkspaceOverviewAction) else limit


_Source = tuple[str, Action, Observation | None, CompletionEvent | None, bool, bool, int]


def _messages(protocol: ReplyProtocol, source: _Source) -> Iterator[Message]:
    """Yield an action's messages: the model's reply, if the action is the first of the reply, and the outcome."""
    _, action, observation, completion, first, vision, limit = source
    if is_from_user(action):
        yield user_message(action)
        return
    if completion is not None and first:
        yield _reply(protocol, completion)
    if isinstance(action, MessageAction) and action.source != "agent":
        yield protocol.outcome(action.content, action.tool_call_id)
    elif isinstance(action, AgentThinkAction) and isinstance(observation, ErrorObservation) and completion:
        for call in [call.id for call in calls_of(completion)] or [None]:
            yield protocol.outcome(observation.content, call)
    elif observation is not None or (action.tool_call_id is not None and not action.runnable):
        images = observation.images if isinstance(observation, _WITH_IMAGES) and vision else ()
        text = observation_text(observation, limit_of(action, limit), pages=True)
        if completion is None or (first is False and action.tool_call_id is None):
            text = f"{_heading(action)}{text}"
        yield protocol.outcome(text, action.tool_call_id, images)


def user_message(action: MessageAction) -> Message:
    """Return the user's message with its images."""
    return Message("user", (Part(text=action.content), *action.images))


def _reply(protocol: ReplyProtocol, completion: CompletionEvent) -> Message:
    calls = calls_of(completion)
    if not calls or protocol is NATIVE:
        thinking = cast("list[dict[str, JsonValue]]", completion.response.get("thinking") or [])
        return Message.text("assistant", content_of(completion), tool_calls=calls, thinking=tuple(thinking))
    return protocol.reply(ModelReply(content_of(completion), calls))


def _heading(action: Action) -> str:
    match action:
        case CmdRunAction(command=command):
            return f"$ {command}\n"
        case FileReadAction(path=path):
            return f"{path}:\n"
        case _:
            return ""
