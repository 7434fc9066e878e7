"""CodeAct by native tool calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from pydantic import JsonValue

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.prompts import render
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentThinkAction,
    CmdRunAction,
    FileEditAction,
    MessageAction,
)
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import CompletionEvent
from handiwork.llm.types import Completion, JsonSchema, Message, Tool, ToolCall


def _schema(required: list[str], **properties: tuple[str, str]) -> JsonSchema:
    return {
        "type": "object",
        "properties": {name: {"type": kind, "description": text} for name, (kind, text) in properties.items()},
        "required": required,
        "additionalProperties": False,
    }


TOOLS = (
    Tool(
        "bash",
        "Run a command in the sandbox's bash session and return its output. An empty command waits for more output "
        "of a program that is still running.",
        _schema(
            ["command"],
            command=("string", "The command, one line or several."),
            is_input=(
                "boolean",
                "True to send the text to the running program instead; C-c, C-d and C-z are keys.",
            ),
            timeout=("number", "Seconds after which it is stopped."),
        ),
    ),
    Tool(
        "edit",
        "Replace a text that occurs exactly once in a file. Make a new file with bash.",
        _schema(
            ["path", "old", "new"],
            path=("string", "The file, absolute or from the shell's directory."),
            old=("string", "The exact text to replace, with enough lines around it to be unique."),
            new=("string", "The text to put there."),
        ),
    ),
    Tool(
        "finish",
        "End the task.",
        _schema(["message"], message=("string", "What you did and found, for the user.")),
    ),
)

_MAKE: dict[str, Callable[[dict[str, Any]], Action]] = {
    "bash": lambda a: CmdRunAction(command=a["command"], is_input=a.get("is_input", False), timeout=a.get("timeout")),
    "edit": lambda a: FileEditAction(path=a["path"], old=a["old"], new=a["new"]),
    "finish": lambda a: AgentFinishAction(outputs={"message": a["message"]}),
}


Made = dict[int, Message]
"""Messages by the id of their event, so that each is made once and stays the same object."""


def once(made: Made, event: int, make: Callable[[], Message]) -> Message:
    """Return the message of an event, made at the first call."""
    if event not in made:
        made[event] = make()
    return made[event]


def messages(state: State, made: Made) -> list[Message]:
    """Return the conversation so far."""
    found = [once(made, 0, lambda: Message.text("system", render("codeact/native", workspace=state.workspace)))]
    replied: int | None = None
    for action, observation in state.history:
        if isinstance(action, MessageAction) and action.source == "user":
            found.append(once(made, action.id, lambda a=action: user_message(a)))
            continue
        completion = state.completions.get(action.completion or 0)
        if completion is not None and completion.id != replied:
            replied = completion.id
            found.append(once(made, completion.id, lambda c=completion: _assistant(c)))
        found += _answers(action, observation, completion, made)
    return found


def actions(completion: Completion) -> list[Action]:
    """Return an action for each tool call, finishing last. Raises MalformedReplyError."""
    if not completion.tool_calls:
        if not completion.content.strip():
            raise MalformedReplyError("Your reply was empty. Call a tool, or `finish`.")
        return [MessageAction(content=completion.content, wait_for_response=True)]
    found = [_action(call, completion.content) for call in completion.tool_calls]
    return sorted(found, key=lambda action: isinstance(action, AgentFinishAction))


def user_message(action: MessageAction) -> Message:
    """Return what the user said, with its images."""
    return Message("user", (Part(text=action.content), *action.images))


def _answers(
    action: Action, observation: Observation | None, completion: CompletionEvent | None, made: Made
) -> list[Message]:
    if isinstance(action, AgentThinkAction) and isinstance(observation, ErrorObservation) and completion:
        calls = [call.id for call in _calls(completion)]
        if not calls:
            return [once(made, observation.id, lambda: Message.text("user", observation.content))]
        return [Message.text("tool", observation.content, tool_call_id=call) for call in calls]
    if action.tool_call_id is None or (action.runnable and observation is None):
        return []
    text = observation_text(action, observation)
    key = observation.id if observation else -action.id
    return [once(made, key, lambda: Message.text("tool", text, tool_call_id=action.tool_call_id))]


def _calls(completion: CompletionEvent) -> list[ToolCall]:
    calls = cast("list[dict[str, str]]", completion.response.get("tool_calls", []))
    return [ToolCall(call["id"], call["name"], call["arguments"]) for call in calls]


def _assistant(completion: CompletionEvent) -> Message:
    content = cast("str", completion.response.get("content") or "")
    thinking = cast("list[dict[str, JsonValue]]", completion.response.get("thinking") or [])
    return Message.text("assistant", content, tool_calls=tuple(_calls(completion)), thinking=tuple(thinking))


def _action(call: ToolCall, thought: str) -> Action:
    make = _MAKE.get(call.name)
    if make is None:
        raise MalformedReplyError(f"There is no tool {call.name!r}. There are: {', '.join(_MAKE)}.")
    try:
        arguments = json.loads(call.arguments or "{}")
        action = make(arguments)
    except KeyError as error:
        raise MalformedReplyError(f"The call of {call.name} lacks the argument {error}.") from None
    except (ValueError, TypeError) as error:
        raise MalformedReplyError(f"The arguments of {call.name} do not fit: {error}") from None
    return action.placed(thought=thought, tool_call_id=call.id)
