"""Assembles the streamed answer of OpenAI's chat completions."""

from __future__ import annotations

import json
import re
import sys
import time
import uuid
from typing import Any, cast

from handiwork.events.record import Usage
from handiwork.llm.errors import AnswerTooLargeError, ProviderError
from handiwork.llm.openai_compatible.endless_text import EndlessText
from handiwork.llm.strict_json import parse
from handiwork.llm.types import OnDelta, ToolCall
from handiwork.llm.usage import cost_of, object_of, usage_of

HELD_BYTES = 16 * 1024 * 1024
"""The most memory for the pieces of one answer: text of 300,000 tokens that arrived one by one."""

MOST_CALLS = 256
"""The most tool calls of one answer."""

_THINKING = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)
_END_OF_THINKING = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_JOINED_FIELDS = ("text", "summary", "data")


class StreamError(Exception):
    """The provider reported an error inside the stream; ``body`` is its message."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.body = body


class MemoryCounter:
    """Counts the memory of an answer's pieces."""

    def __init__(self) -> None:
        self._size = 0

    def add(self, *pieces: object) -> None:
        """Count stored pieces. Raises AnswerTooLargeError beyond HELD_BYTES."""
        self._size += sum(map(_memory, pieces))
        if self._size > HELD_BYTES:
            raise AnswerTooLargeError(
                f"the model's server sent an answer that takes more than {HELD_BYTES >> 20} MB, so it was dropped"
            )


def split_thinking(text: str) -> tuple[str, str]:
    """Return the reasoning that a server without a parser for it leaves in a text, and the answer after it.

    It stands in <think> tags at the beginning; the first tag is missing where the prompt ends with it.
    """
    if match := _THINKING.match(text):
        return match[1].strip(), text[match.end() :].lstrip()
    end = _END_OF_THINKING.search(text)
    # Inside a fenced block it belongs to a file.
    if end is None or len(re.findall(r"^[ \t]*```", text[: end.start()], re.MULTILINE)) % 2:
        return "", text
    return text[: end.start()].strip(), text[end.end() :].lstrip()


class _PartialCall:
    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []
        self.extra: dict[str, Any] = {}


class _Detail:
    """A part of the reasoning: its ``fields``, and the pieces of fields that arrive in pieces."""

    def __init__(self, piece: dict[str, Any]) -> None:
        self.fields: dict[str, Any] = {}
        self._pieces: dict[str, list[str]] = {}
        self.add(piece)

    def continues_with(self, piece: dict[str, Any]) -> bool:
        return all(self.fields.get(key) == piece.get(key) for key in ("type", "index"))

    def add(self, piece: dict[str, Any]) -> None:
        for key, value in piece.items():
            if key in _JOINED_FIELDS and value:
                self._pieces.setdefault(key, []).append(_text(value))
            if value is not None or key not in self.fields:
                self.fields[key] = value

    def joined(self) -> dict[str, Any]:
        return self.fields | {key: "".join(pieces) for key, pieces in self._pieces.items()}


class Assembly:
    """The parts of one answer received so far; fed with the lines of the event stream.

    ``finds_repetition`` lets ``is_endless`` know.
    """

    def __init__(self, on_delta: OnDelta | None, *, finds_repetition: bool = False) -> None:
        self._on_delta = on_delta
        self._started = time.monotonic()
        self._counter = MemoryCounter()
        self._text: list[str] = []
        self._endless = EndlessText() if finds_repetition else None
        self._reasoning: dict[str, list[str]] = {}
        self._thoughts: list[str] = []
        self._details: list[_Detail] = []
        self._calls: list[_PartialCall] = []
        self._open: dict[int, _PartialCall] = {}
        self._usage: object = None
        self.first_token: float | None = None
        self.model = ""
        self.finish_reason = ""
        self.done = False

    def feed(self, line: str) -> None:
        """Process one line.

        Raises ProviderError for a line that is not a chunk of an answer, StreamError for an error reported by the
        provider, AnswerTooLargeError if the answer has too many or too large parts.
        """
        # A server that does not stream sends one object, an answer or an error.
        if not line.startswith(("data:", "{")):
            return
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            self.done = True
            return
        try:
            chunk = parse(data)
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
        if self._endless is not None:
            self._endless.add("".join(pieces))
        if self._on_delta is not None:
            for piece in pieces:
                self._on_delta(piece)

    def _take(self, chunk: dict[str, Any]) -> list[str]:
        pieces: list[str] = []
        self.model = _text(chunk.get("model")) or self.model
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason
            delta: dict[str, Any] = choice.get("delta", choice.get("message")) or {}
            if delta and self.first_token is None:
                self.first_token = time.monotonic() - self._started
            if isinstance(delta.get("content"), list):
                delta = self._take_blocks(delta)
            self._take_reasoning(delta)
            for call in delta.get("tool_calls") or ():
                self._take_call(call)
            if text := _text(delta.get("content")):
                self._counter.add(text)
                pieces.append(text)
        return pieces

    def _take_blocks(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return the delta with the text of its list of blocks, as Mistral's reasoning models send it."""
        texts: dict[str, list[str]] = {"thinking": [], "text": []}
        for block in delta["content"]:
            parts = block.get("thinking") or () if block.get("type") == "thinking" else (block,)
            texts.setdefault(_text(block.get("type")), []).extend(_text(part.get("text")) for part in parts)
        if thought := "".join(texts["thinking"]):
            self._counter.add(thought)
            self._thoughts.append(thought)
        return {**delta, "content": "".join(texts["text"])}

    def _take_reasoning(self, delta: dict[str, Any]) -> None:
        for field in _REASONING_FIELDS:
            if text := _text(delta.get(field)):
                self._counter.add(text)
                self._reasoning.setdefault(field, []).append(text)
        for detail in delta.get("reasoning_details") or ():
            self._take_detail(detail)

    def _take_detail(self, piece: dict[str, Any]) -> None:
        self._counter.add(piece)
        if self._details and self._details[-1].continues_with(piece):
            self._details[-1].add(piece)
        else:
            self._details.append(_Detail(piece))

    def _take_call(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        if index is not None and not isinstance(index, int):
            raise TypeError("the index of a tool call is not a number")
        call_id = _text(piece.get("id"))
        call = self._open.get(index if index is not None else len(self._calls) - 1)
        # Some servers give every call index 0, or none: a new id also means a new call.
        if call is None or (call_id and call_id != call.id):
            if len(self._calls) == MOST_CALLS:
                raise AnswerTooLargeError(f"the model's server sent more than {MOST_CALLS} tool calls in one answer")
            call = _PartialCall(call_id)
            self._open[index if index is not None else len(self._calls)] = call
            self._calls.append(call)
        function: dict[str, Any] = piece.get("function") or {}
        call.name = call.name or _text(function.get("name"))
        arguments = function.get("arguments") or ""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        self._counter.add(text)
        call.arguments.append(text)
        if extra := object_of(piece.get("extra_content")):
            self._counter.add(extra)
            call.extra |= extra

    @property
    def is_endless(self) -> bool:
        """Whether the text repeats itself so often at its end that its model will not stop."""
        return self._endless is not None and self._endless.is_endless

    def cut(self) -> None:
        """Cut the text after the first part of its endless end; its tokens are counted as the pieces that arrived."""
        assert self._endless is not None
        self._usage = {"prompt_tokens": 0, "completion_tokens": len(self._text)}
        self._text = ["".join(self._text)[: self._endless.kept]]
        self.finish_reason = "length"

    @property
    def content(self) -> str:
        """The text so far, without reasoning."""
        return split_thinking("".join(self._text))[1]

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, each with a unique id even if the server gave none or repeated one."""
        ids: set[str] = {""}
        calls: list[ToolCall] = []
        for call in self._calls:
            call_id = call.id if call.id not in ids else f"call_{uuid.uuid4().hex[:16]}"
            ids.add(call_id)
            calls.append(ToolCall(call_id, call.name, "".join(call.arguments)))
        return tuple(calls)

    @property
    def thinking(self) -> tuple[dict[str, Any], ...]:
        """The reasoning, with the name of the field in which it must be sent back; that of the text is never."""
        if self._details:
            details = [detail.joined() for detail in self._details]
            # The details include the plain text, and signatures with it.
            content = "".join(str(detail.get("text") or "") for detail in details)
            return ({"content": content, "field": "reasoning_details", "details": details},)
        parts = [{"content": "".join(text), "field": field} for field, text in self._reasoning.items()]
        thought = "".join(self._thoughts) or split_thinking("".join(self._text))[0]
        return (*parts, *([{"content": thought}] if thought else []))

    @property
    def extras(self) -> tuple[dict[str, Any], ...]:
        """What Google sends beside its calls and wants back with them, its signatures, by the calls' positions."""
        return tuple(
            {"content": "", "call": n, "extra": call.extra} for n, call in enumerate(self._calls) if call.extra
        )

    @property
    def usage(self) -> Usage:
        """The tokens by class, zero if the server reported none or implausible figures."""
        report = object_of(self._usage)
        details = object_of(report.get("prompt_tokens_details"))
        return usage_of(
            report.get("prompt_tokens"),
            _output_of(report),
            # The protocol counts cached tokens as prompt tokens too; DeepSeek and Kimi have fields of their own.
            details.get("cached_tokens") or report.get("prompt_cache_hit_tokens") or report.get("cached_tokens"),
            details.get("cache_write_tokens"),
        )

    @property
    def reported_cost(self) -> float | None:
        """The cost in USD that the provider reports; None if it does not.

        With a key of the user's own, OpenRouter's cost is its fee alone; the cost of the key is beside it.
        """
        report = object_of(self._usage)
        cost = cost_of(report.get("cost"))
        if cost is None or report.get("is_byok") is not True:
            return cost
        return cost + (cost_of(object_of(report.get("cost_details")).get("upstream_inference_cost")) or 0.0)


def _output_of(report: dict[str, Any]) -> object:
    """Return the tokens of the answer with its reasoning, which xAI and Google count in the total alone."""
    prompt, output, total = (report.get(f"{kind}_tokens") for kind in ("prompt", "completion", "total"))
    if not (isinstance(prompt, int) and isinstance(output, int) and isinstance(total, int)):
        return output
    hidden = total - prompt - output
    reasoning = object_of(report.get("completion_tokens_details")).get("reasoning_tokens")
    return output + hidden if hidden > 0 and reasoning in (None, hidden) else output


def _text(value: object) -> str:
    """Return a text field, "" if it is missing. Raises TypeError."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("a text field has another type")
    return value


def _memory(value: object) -> int:
    """Return the bytes of memory of a JSON value."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return size + sum(map(_memory, fields)) + sum(map(_memory, fields.values()))
    return size + sum(map(_memory, cast("list[object]", value))) if isinstance(value, list) else size
