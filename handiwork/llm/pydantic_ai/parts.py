"""Messages in pydantic-ai's form, for providers with their own protocols."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from handiwork.events.base import Part
from handiwork.llm.openai_compatible.wire import Blobs, arguments_object, text_of, valid_name
from handiwork.llm.types import Message, ToolCall

_PROVIDER_FIELDS = ("id", "signature", "provider_name", "provider_details")


def thinking_of(parts: Sequence[ModelResponsePart]) -> tuple[dict[str, Any], ...]:
    """Return the data to send back to the provider besides text and calls: reasoning, signatures and ids.

    ``at`` is the part's index in the answer; the provider checks signatures against the order.
    """
    entries: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        if not isinstance(part, ThinkingPart | TextPart | ToolCallPart):
            continue
        extras = {key: value for key in _PROVIDER_FIELDS if (value := getattr(part, key, None))}
        if isinstance(part, ThinkingPart):
            entries.append({"content": part.content, "at": index, **extras})
        elif extras:
            owner = part.tool_call_id if isinstance(part, ToolCallPart) else "text"
            entries.append({"content": "", "at": index, "owner": owner, **extras})
    return tuple(entries)


def calls_of(parts: Sequence[ModelResponsePart]) -> tuple[ToolCall, ...]:
    """Return the tool calls of an answer, with their arguments as the model wrote them."""
    return tuple(
        ToolCall(
            part.tool_call_id, part.tool_name, part.args if isinstance(part.args, str) else part.args_as_json_str()
        )
        for part in parts
        if isinstance(part, ToolCallPart)
    )


def _sent(call_id: str) -> str:
    """Return a tool call's id as every provider takes it: another model's may have other characters."""
    fits = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id)
    return call_id if fits or not call_id else hashlib.sha256(call_id.encode()).hexdigest()[:24]


class MessageParts:
    """Builds pydantic-ai's form of messages, once for each message; only reasoning of ``provider`` is sent back."""

    def __init__(self, blobs: Blobs, provider: str) -> None:
        self._blobs = blobs
        self._provider = provider
        self._forms: WeakKeyDictionary[Message, ModelMessage] = WeakKeyDictionary()

    def forms(self, messages: Sequence[Message]) -> list[ModelMessage]:
        """Return the conversation's form; the messages between two answers become one request."""
        names: dict[str, str] = {}
        forms: list[ModelMessage] = []
        for message in messages:
            names.update((call.id, valid_name(call.name)) for call in message.tool_calls)
            form = self._forms.get(message)
            if form is None:
                form = self._forms[message] = self._form(message, names)
            last = forms[-1] if forms else None
            if isinstance(form, ModelRequest) and isinstance(last, ModelRequest):
                forms[-1] = ModelRequest(parts=[*last.parts, *form.parts])
            else:
                forms.append(form)
        return forms

    def _form(self, message: Message, names: dict[str, str]) -> ModelMessage:
        if message.role == "assistant":
            return ModelResponse(parts=self._answer(message))
        if message.role == "system":
            return ModelRequest(parts=[SystemPromptPart(text_of(message.content))])
        if message.role == "tool":
            call_id = message.tool_call_id or ""
            sent_id = _sent(call_id)
            content = text_of(message.content) or "(no output)"
            return ModelRequest(parts=[ToolReturnPart(names.get(call_id, ""), content, sent_id)])
        return ModelRequest(parts=[UserPromptPart([self._content(part) for part in message.content])])

    def _content(self, part: Part) -> UserContent:
        if part.blob is None:
            return part.text or ""
        return BinaryContent(self._blobs(part.blob), media_type=part.media_type or "image/png")

    def _answer(self, message: Message) -> list[ModelResponsePart]:
        entries = [part for part in message.thinking if part.get("provider_name") == self._provider]
        extras = {
            part["owner"]: {key: part[key] for key in _PROVIDER_FIELDS if key in part}
            for part in entries
            if "owner" in part
        }
        parts: list[ModelResponsePart] = []
        if (text := text_of(message.content)).strip():
            parts.append(TextPart(text, **extras.get("text", {})))
        for call in message.tool_calls:
            arguments = arguments_object(call.arguments)
            name = valid_name(call.name)
            parts.append(ToolCallPart(name, arguments, _sent(call.id), **extras.get(call.id, {})))
        for part in sorted((part for part in entries if "owner" not in part), key=lambda part: part["at"]):
            fields = {key: part[key] for key in _PROVIDER_FIELDS if key in part}
            parts.insert(part["at"], ThinkingPart(part["content"], **fields))
        return parts
