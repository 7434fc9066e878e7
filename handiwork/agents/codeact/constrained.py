"""CodeAct for models that follow no tool protocol: each reply is bound to a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.prompts import render
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction, FileEditAction, MessageAction
from handiwork.events.base import Action, Part
from handiwork.llm.types import Completion, JsonSchema, Message, Tool

OBSERVATION_LIMIT = 4_000
"""Characters of an observation shown to a small model."""


def _variant(action: str, **fields: str) -> JsonSchema:
    properties: JsonSchema = {"thought": {"type": "string", "maxLength": 400}, "action": {"const": action}}
    properties |= {name: {"type": kind} for name, kind in fields.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMA: JsonSchema = {
    "oneOf": [
        _variant("bash", command="string"),
        _variant("edit", path="string", old="string", new="string"),
        _variant("finish", message="string"),
    ]
}


class ConstrainedReplies:
    """Builds the conversation from the history, and an action from a JSON reply."""

    tools: tuple[Tool, ...] = ()
    schema: JsonSchema | None = SCHEMA

    def __init__(self) -> None:
        self._made: dict[int, Message] = {}

    def reset(self) -> None:
        """Forget the rendered messages."""
        self._made.clear()

    def temperature(self, state: State) -> float | None:
        """Return 0: the likeliest reply."""
        return 0.0

    def messages(self, state: State) -> list[Message]:
        """Return the conversation so far; the message of an event is made once and stays the same object."""
        system = render("codeact/constrained", workspace=state.workspace)
        found = [self._once(0, lambda: Message.text("system", system))]
        for action, observation in state.history:
            if isinstance(action, MessageAction) and action.source == "user":
                parts = (Part(text=action.content), *action.images)
                found.append(self._once(action.id, lambda p=parts: Message("user", p)))
                continue
            completion = state.completions.get(action.completion or 0)
            if completion is not None:
                reply = cast("str", completion.response.get("content") or "")
                found.append(self._once(completion.id, lambda r=reply: Message.text("assistant", r)))
            if observation is not None:
                text = observation_text(action, observation, OBSERVATION_LIMIT)
                found.append(self._once(observation.id, lambda t=text: Message.text("user", t)))
        return found

    def actions(self, completion: Completion) -> list[Action]:
        """Return the reply's one action. Raises MalformedReplyError."""
        try:
            reply = cast("dict[str, Any]", json.loads(completion.content))
            return [_action(reply)]
        except (ValueError, KeyError, TypeError) as error:
            raise MalformedReplyError(f"Your reply is not one of the JSON objects asked for: {error}") from None

    def _once(self, event: int, make: Callable[[], Message]) -> Message:
        if event not in self._made:
            self._made[event] = make()
        return self._made[event]


def _action(reply: dict[str, Any]) -> Action:
    thought = str(reply.get("thought", ""))
    match reply["action"]:
        case "bash":
            return CmdRunAction(command=reply["command"], thought=thought)
        case "edit":
            return FileEditAction(path=reply["path"], old=reply["old"], new=reply["new"], thought=thought)
        case "finish":
            return AgentFinishAction(outputs={"message": reply["message"]}, thought=thought)
        case other:
            raise ValueError(f"there is no action {other!r}")
