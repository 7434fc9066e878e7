"""Messages, tools and schemas in the form of OpenAI's chat completions, and the answer of its embeddings endpoint."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError

from handiwork.events.base import Part
from handiwork.events.record import Usage
from handiwork.llm.errors import ProviderError, RequestRejectedError
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Capabilities, JsonSchema, Message, Tool, is_sound
from handiwork.llm.usage import cost_of, object_of, usage_of

Blobs = Callable[[str], bytes]
"""Returns the bytes of a blob with this SHA-256 in hex."""

WireMessage = dict[str, Any]

WireRule = Literal["reasoning", "short ids"]


def no_blobs(digest: str) -> bytes:
    """Raise RequestRejectedError: there is no store to read images from."""
    raise RequestRejectedError(f"the conversation has image {digest[:12]}, but this model was given no blob store")


def require_senses(messages: Sequence[Message], capabilities: Capabilities, model: str) -> None:
    """Raise RequestRejectedError if a message has an image or a sound that the model does not take."""
    if capabilities.vision and capabilities.hearing:
        return
    parts = [part for message in messages for part in message.content if part.blob is not None]
    if not capabilities.hearing and any(is_sound(part) for part in parts):
        raise RequestRejectedError(f"{model} cannot hear, and the conversation has a sound; choose a model with audio")
    if not capabilities.vision and has_images(messages):
        raise RequestRejectedError(
            f"{model} cannot see images and the conversation has one; choose a model with vision"
        )


def has_images(messages: Sequence[Message]) -> bool:
    """Return whether a message has a picture."""
    return any(part.blob is not None and not is_sound(part) for message in messages for part in message.content)


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return a call's arguments as an object; other text is kept in its field ``arguments``."""
    try:
        parsed: Any = parse(arguments or "{}")
    except ValueError:
        parsed = None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {"arguments": arguments}


def text_of(parts: Sequence[Part]) -> str:
    """Return the text parts, separated by empty lines."""
    return "\n\n".join(part.text for part in parts if part.text)


def dumps(value: object) -> str:
    """Return the value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def tool_form(tool: Tool) -> dict[str, Any]:
    """Return a tool as a function definition."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def schema_form(schema: JsonSchema) -> dict[str, Any]:
    """Return the response format that constrains a reply to ``schema``."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def valid_name(name: str) -> str:
    """Return a tool's name as every provider takes it: models also call tools that there are not."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"


class Wire:
    """Builds the wire form of messages, once for each message; keeps that of the last conversation.

    ``rules`` are what the server was found to demand: "reasoning", a reasoning_content in every answer, and "short
    ids", tool calls with ids of nine letters or digits.
    """

    def __init__(self, blobs: Blobs, model: str) -> None:
        self.rules = set[WireRule]()
        self._blobs = blobs
        self._model = model
        self._texts: WeakKeyDictionary[Message, str] = WeakKeyDictionary()
        self._last: tuple[list[Message], list[str]] = [], []

    def obey(self, rule: WireRule) -> None:
        """Write messages by this rule from now on."""
        if rule not in self.rules:
            self.rules.add(rule)
            self._texts.clear()
            self._last = [], []

    def texts(self, messages: Sequence[Message]) -> list[str]:
        """Return every message as JSON; known messages give the same text object again."""
        previous, texts = self._last
        # Most conversations are the previous one plus a few messages.
        begin = len(previous) if messages[: len(previous)] == previous else 0
        texts = texts[:begin]
        for message in messages[begin:]:
            text = self._texts.get(message)
            if text is None:
                text = self._texts[message] = dumps(self._form(message))
            texts.append(text)
        self._last = list(messages), texts
        return texts

    def _form(self, message: Message) -> WireMessage:
        form: WireMessage = {"role": message.role, "content": self._content(message.content)}
        if message.role == "tool":
            form["tool_call_id"] = self._id(message.tool_call_id or "")
            form["content"] = form["content"] or "(no output)"
        if message.tool_calls:
            calls: list[dict[str, Any]] = [
                {
                    "id": self._id(call.id),
                    "type": "function",
                    "function": {
                        "name": valid_name(call.name),
                        "arguments": json.dumps(arguments_object(call.arguments)),
                    },
                }
                for call in message.tool_calls
            ]
            form["tool_calls"] = calls
            # Reasoning is sent back only between tool calls, and to the model it came from: others refuse it.
            for part in message.thinking:
                if part.get("model") == self._model and (field := part.get("field")):
                    form[field] = part["details"] if "details" in part else part["content"]
                if part.get("model") == self._model and part.get("call", len(calls)) < len(calls):
                    calls[part["call"]]["extra_content"] = part["extra"]
        if message.role == "assistant" and "reasoning" in self.rules:
            own = [str(part.get("content") or "") for part in message.thinking if part.get("model") == self._model]
            form["reasoning_content"] = "".join(own) or " "
        return form

    def _id(self, call_id: str) -> str:
        if "short ids" not in self.rules or re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
            return call_id
        return hashlib.sha256(call_id.encode()).hexdigest()[:9]

    def _content(self, parts: Sequence[Part]) -> str | list[dict[str, Any]]:
        if all(part.blob is None for part in parts):
            return text_of(parts)
        forms: list[dict[str, Any]] = []
        for part in parts:
            if part.blob is not None:
                data = base64.b64encode(self._blobs(part.blob)).decode()
                if is_sound(part):
                    kind = "wav" if part.media_type == "audio/wav" else "mp3"
                    forms.append({"type": "input_audio", "input_audio": {"data": data, "format": kind}})
                    continue
                url = f"data:{part.media_type};base64,{data}"
                forms.append({"type": "image_url", "image_url": {"url": url}})
            elif part.text:
                forms.append({"type": "text", "text": part.text})
        return forms


class _Vector(BaseModel):
    index: int
    embedding: tuple[float, ...]


class _Answer(BaseModel):
    data: list[_Vector]
    usage: object = None


def embeddings_of(answer: bytes, count: int, server: str) -> tuple[list[tuple[float, ...]], Usage, float | None]:
    """Return the vectors of ``count`` texts in their order, their usage, and the cost in USD that the server reports.

    Raises ProviderError for another answer.
    """
    try:
        parsed = _Answer.model_validate_json(answer)
    except ValidationError as error:
        raise ProviderError(f"{server} sent no embeddings: {answer[:200].decode(errors='replace')}") from error
    vectors = {vector.index: vector.embedding for vector in parsed.data}
    if sorted(vectors) != list(range(count)) or len(set(map(len, vectors.values()))) != 1:
        raise ProviderError(f"{server} sent other embeddings than one for each of {count} texts")
    figures = object_of(parsed.usage)
    usage = usage_of(figures.get("prompt_tokens"), 0, 0, 0)
    return [vectors[number] for number in range(count)], usage, cost_of(figures.get("cost"))
