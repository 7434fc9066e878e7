"""CodeAct with native tool calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

from pydantic import JsonValue

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.agents.codeact.toolbox import MAKERS, TOOLS, Makers
from handiwork.agents.prompts import render
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.agents.tools import Function, name_of, tools_of
from handiwork.agents.tools import call as call_function
from handiwork.events.action import AgentFinishAction, AgentThinkAction, MessageAction
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import ErrorObservation, IPythonRunCellObservation
from handiwork.events.record import CompletionEvent
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Completion, Message, Tool, ToolCall


def tools(functions: Sequence[Function]) -> tuple[Tool, ...]:
    """Return CodeAct's tools and the agent's own. Raises TypeError for a function that cannot be a tool."""
    if duplicates := [name for name in map(name_of, functions) if name in MAKERS]:
        raise TypeError(f"{duplicates[0]} cannot be a tool: there is one of this name already.")
    return *TOOLS, *tools_of(functions)


def messages(state: State, cache: MessageCache, *, vision: bool = False) -> list[Message]:
    """Return the conversation so far; ``vision`` includes the pictures of cells."""
    cache.begin()
    conversation = [*cache.get_or_build(0, (state.workspace,), _system)]
    replied: int | None = None
    for action, observation in state.history:
        completion = state.completions.get(action.completion or 0)
        first = completion is not None and completion.id != replied
        if completion is not None:
            replied = completion.id
        conversation += cache.get_or_build(action.id, (action, observation, completion, first, vision), _messages)
    return conversation


def actions(completion: Completion, functions: Sequence[Function] = ()) -> list[Action]:
    """Return an action for each call of a tool or of one of ``functions``, finishing last.

    Raises MalformedReplyError for an empty reply or an invalid call.
    """
    if not completion.tool_calls:
        if not completion.content.strip():
            raise MalformedReplyError("Your reply was empty. Call a tool, or `finish`.")
        return [MessageAction(content=completion.content, wait_for_response=True)]
    own_makers = {name_of(function): partial(call_function, function) for function in functions}
    result = [_action(call, completion.content, MAKERS | own_makers) for call in completion.tool_calls]
    return sorted(result, key=lambda action: isinstance(action, AgentFinishAction))


def user_message(action: MessageAction) -> Message:
    """Return the user's message with its images."""
    return Message("user", (Part(text=action.content), *action.images))


def _system(workspace: str) -> Iterator[Message]:
    yield Message.text("system", render("codeact/native", workspace=workspace))


def _messages(
    action: Action, observation: Observation | None, completion: CompletionEvent | None, first: bool, vision: bool
) -> Iterator[Message]:
    """Yield an action's messages: the model's reply, if the action is the ``first`` of the reply, and the outcome."""
    if isinstance(action, MessageAction) and action.source != "agent":
        yield user_message(action)
        return
    if completion is not None and first:
        yield _assistant(completion)
    if isinstance(action, AgentThinkAction) and isinstance(observation, ErrorObservation) and completion:
        calls = [call.id for call in _calls(completion)]
        if not calls:
            yield Message.text("user", observation.content)
        for call in calls:
            yield _tool(observation.content, call)
    elif action.tool_call_id is not None and (observation is not None or not action.runnable):
        images = observation.images if isinstance(observation, IPythonRunCellObservation) and vision else ()
        yield _tool(observation_text(action, observation, pages=True), action.tool_call_id, images)


def _tool(text: str, call_id: str, images: tuple[Part, ...] = ()) -> Message:
    return Message("tool", (Part(text=text), *images), tool_call_id=call_id)


def _calls(completion: CompletionEvent) -> list[ToolCall]:
    calls = cast("list[dict[str, str]]", completion.response.get("tool_calls", []))
    return [ToolCall(call["id"], call["name"], call["arguments"]) for call in calls]


def _assistant(completion: CompletionEvent) -> Message:
    content = cast("str", completion.response.get("content") or "")
    thinking = cast("list[dict[str, JsonValue]]", completion.response.get("thinking") or [])
    return Message.text("assistant", content, tool_calls=tuple(_calls(completion)), thinking=tuple(thinking))


def _action(call: ToolCall, thought: str, makers: Makers) -> Action:
    make = makers.get(call.name)
    if make is None:
        raise MalformedReplyError(f"There is no tool {call.name!r}. There are: {', '.join(makers)}.")
    try:
        arguments = parse(call.arguments or "{}")
        action = make(arguments)
    except KeyError as error:
        raise MalformedReplyError(f"The call of {call.name} lacks the argument {error}.") from None
    except (ValueError, TypeError) as error:
        raise MalformedReplyError(f"The arguments of {call.name} do not fit: {error}") from None
    return action.with_fields(thought=thought, tool_call_id=call.id)
