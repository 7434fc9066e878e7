"""The streamed answer of OpenAI's chat completions, put together."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, cast

from handiwork.events.record import Usage
from handiwork.llm.errors import ProviderError
from handiwork.llm.types import OnDelta, ToolCall

_REASONING_FIELDS = ("reasoning_content", "reasoning")


class StreamError(Exception):
    """The provider told of an error inside the stream; ``body`` is what it said."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.body = body


class _Call:
    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []


class Assembly:
    """What has arrived of one answer; fed with the lines of the event stream."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta = on_delta
        self._started = time.monotonic()
        self._text: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}
        self._usage: dict[str, Any] = {}
        self.first_token: float | None = None
        self.model = ""
        self.finish_reason = ""
        self.done = False

    def feed(self, line: str) -> None:
        """Take in one line; raises ProviderError for what is no JSON object, StreamError for an error."""
        if not line.startswith("data:"):
            return
        data = line[5:].strip()
        if data == "[DONE]":
            self.done = True
            return
        try:
            chunk: Any = json.loads(data)
        except ValueError:
            raise ProviderError(f"the stream has a line that is no JSON: {data[:200]}") from None
        if not isinstance(chunk, dict):
            raise ProviderError(f"the stream has a line that is no object: {data[:200]}")
        fields = cast("dict[str, Any]", chunk)
        if fields.get("error"):
            raise StreamError(fields)
        try:
            pieces = self._take(fields)
        except (AttributeError, TypeError) as error:
            raise ProviderError(f"the stream has a line of another shape: {data[:200]}") from error
        self._text += pieces
        if self._on_delta is not None:
            for piece in pieces:
                self._on_delta(piece)

    def _take(self, chunk: dict[str, Any]) -> list[str]:
        pieces: list[str] = []
        self.model = chunk.get("model") or self.model
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            delta: dict[str, Any] = choice.get("delta") or {}
            if delta and self.first_token is None:
                self.first_token = time.monotonic() - self._started
            self._take_reasoning(delta)
            for call in delta.get("tool_calls") or ():
                self._take_call(call)
            if text := delta.get("content"):
                pieces.append(str(text))
        return pieces

    def _take_reasoning(self, delta: dict[str, Any]) -> None:
        for field in _REASONING_FIELDS:
            if text := delta.get(field):
                self._reasoning.setdefault(field, []).append(text)
        for detail in delta.get("reasoning_details") or ():
            self._take_detail(detail)

    def _take_detail(self, piece: dict[str, Any]) -> None:
        known = self._details[-1] if self._details else {}
        if not known or any(known.get(key) != piece.get(key) for key in ("type", "index")):
            self._details.append(dict(piece))
            return
        for key, value in piece.items():
            if key in ("text", "summary", "data") and value:
                known[key] = (known.get(key) or "") + value
            elif value is not None:
                known[key] = value

    def _take_call(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        call_id = piece.get("id") or ""
        call = self._open.get(index if index is not None else len(self._calls) - 1)
        # Some servers give every call index 0, or none: a new id is a new call too.
        if call is None or (call_id and call_id != call.id):
            call = _Call(call_id)
            self._open[index if index is not None else len(self._calls)] = call
            self._calls.append(call)
        function: dict[str, Any] = piece.get("function") or {}
        call.name = call.name or function.get("name") or ""
        arguments = function.get("arguments") or ""
        call.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    @property
    def content(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, each with an id of its own even where the server gave none or one twice."""
        seen: set[str] = {""}
        calls: list[ToolCall] = []
        for call in self._calls:
            call_id = call.id if call.id not in seen else f"call_{uuid.uuid4().hex[:16]}"
            seen.add(call_id)
            calls.append(ToolCall(call_id, call.name, "".join(call.arguments)))
        return tuple(calls)

    @property
    def thinking(self) -> tuple[dict[str, Any], ...]:
        """The reasoning, with the name of the field it has to go back under."""
        if self._details:
            # The details hold the plain text too, and signatures with it.
            content = "".join(str(detail.get("text") or "") for detail in self._details)
            return ({"content": content, "field": "reasoning_details", "details": self._details},)
        return tuple({"content": "".join(text), "field": field} for field, text in self._reasoning.items())

    @property
    def usage(self) -> Usage:
        """The tokens by class, zero where the server told none."""
        # The protocol counts cached tokens as prompt tokens too.
        prompt = int(self._usage.get("prompt_tokens") or 0)
        details: dict[str, Any] = self._usage.get("prompt_tokens_details") or {}
        read = int(details.get("cached_tokens") or self._usage.get("prompt_cache_hit_tokens") or 0)
        written = int(details.get("cache_write_tokens") or 0)
        return Usage(
            input=max(prompt - read - written, 0),
            output=int(self._usage.get("completion_tokens") or 0),
            cache_read=read,
            cache_write=written,
        )

    @property
    def reported_cost(self) -> float | None:
        """The USD the provider says this cost; None where it does not say."""
        cost = self._usage.get("cost")
        return float(cost) if isinstance(cost, int | float) else None
