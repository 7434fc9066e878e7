"""Whatever a model's server streams is an answer or the model's error, and what is kept of it fits the log."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.base import MalformedReplyError
from handiwork.events.codec import from_dict, to_dict, to_json
from handiwork.events.record import CompletionEvent
from handiwork.llm.bounded_client import EVENT_BYTES, lines_of
from handiwork.llm.errors import LLMError
from handiwork.llm.failure import refusal
from handiwork.llm.openai_compatible.stream import Assembly, StreamError
from handiwork.llm.openai_compatible.wire import Wire, no_blobs
from handiwork.llm.price import price
from handiwork.llm.retry import retry_after_seconds
from handiwork.llm.types import Completion, Message
from tests.agents.states import native_actions
from tests.fuzz.settings import fuzz_seed, fuzz_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
URL = "http://127.0.0.1/v1"
KEYS = [
    *("choices", "delta", "content", "finish_reason", "index", "tool_calls", "id", "function", "name", "arguments"),
    *("usage", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "cost", "model"),
    *("reasoning", "reasoning_content", "reasoning_details", "type", "text", "summary", "data", "error", "code"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 10**9, 10**30, 1.5, 1e300, "", "a", "stop", "bash", "\ud83d", "\0", "x" * 3000),
    *([], {}, [[]], [{}], "12", '{"command": "ls"}', '{"command": NaN}', "[" * 3000, float("nan"), float("inf")),
]
CHUNK: dict[str, Any] = {
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "delta": {
                "content": "hello",
                "reasoning": "hm",
                "reasoning_details": [{"type": "t", "index": 0, "text": "hm", "signature": "s"}],
                "tool_calls": [
                    {"index": 0, "id": "c", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 3},
        "cost": 0.25,
    },
}
GOOD = b"data: " + json.dumps(CHUNK).encode() + b"\n\n: still there\n\ndata: [DONE]\n\n"
PIECES = [b"data:", b"\n", b"\r", b"\n\n", b"[DONE]", b'{"', b"}", b"[", b"\\ud800", b"\xff", b"\0", b"NaN", b"1e999"]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def mutated(value: Any, chance: random.Random, depth: int = 0) -> Any:
    """Return a JSON value with some of its parts changed, left out or put in."""
    if chance.random() < 0.08:
        return chance.choice(VALUES)
    if chance.random() < 0.03 and depth < 4:
        return {chance.choice(KEYS): mutated(value, chance, depth + 1)}
    if isinstance(value, dict):
        items: list[tuple[str, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        kept = {key: mutated(item, chance, depth + 1) for key, item in items if chance.random() > 0.05}
        return kept | ({chance.choice(KEYS): chance.choice(VALUES)} if chance.random() < 0.1 else {})
    if isinstance(value, list):
        listed: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return [mutated(item, chance, depth + 1) for item in listed for _ in range(chance.choice([1, 1, 1, 0, 2]))]
    return value


def with_other_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some of them overwritten, cut out, repeated, or others put in."""
    found = bytearray(data)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(found) + 1)
        to = at + chance.randrange(12)
        found[at:to] = chance.choice([b"", bytes(found[at:to]) * 2, chance.randbytes(to - at), chance.choice(PIECES)])
    return bytes(found)


async def assembled(data: bytes, chance: random.Random) -> Assembly:
    """Return what a stream comes to that arrives in pieces."""

    async def arriving() -> AsyncIterator[bytes]:
        at = 0
        while at < len(data):
            size = chance.choice([1, 7, 50, len(data)])
            yield data[at : at + size]
            at += size

    response = httpx2.Response(200, content=arriving(), request=httpx2.Request("POST", URL))
    said: list[str] = []
    answer = Assembly(said.append)
    async for line in lines_of(response):
        assert len(line) <= EVENT_BYTES
        answer.feed(line)
    assert "".join(said) == answer.content
    return answer


def kept_whole(answer: Assembly) -> None:
    """Do with an answer what a session does: price it, keep it, make actions of it, and send it back."""
    usage, told = answer.usage, answer.reported_cost
    cost, source = price(usage, "m", URL, told)
    assert (cost is None) == (source == "unknown")
    assert told is None or told >= 0
    completion = Completion(
        answer.content, answer.tool_calls, answer.thinking, usage, cost, source, answer.model, answer.finish_reason
    )
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in completion.tool_calls]
    response: dict[str, Any] = {"content": answer.content, "tool_calls": calls, "thinking": list(answer.thinking)}
    event = CompletionEvent(
        model=completion.model, response=response, usage=usage, cost=cost, cost_source=source,
        finish_reason=completion.finish_reason,
    )  # fmt: skip
    assert from_dict(json.loads(to_json(event).encode())) == from_dict(to_dict(event))
    with suppress(MalformedReplyError):
        native_actions(completion)
    thinking = tuple({**part, "model": "m"} for part in completion.thinking)
    message = Message.text("assistant", completion.content, tool_calls=completion.tool_calls, thinking=thinking)
    (text,) = Wire(no_blobs, "m").texts([message])
    json.loads(text.encode(), parse_constant=pytest.fail)


def take(runner: asyncio.Runner, data: bytes, chance: random.Random) -> None:
    try:
        answer = runner.run(assembled(data, chance))
    except LLMError:
        return
    except StreamError as told:
        refusal(None, told.body, "m", URL, "KEY")
        return
    kept_whole(answer)


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_bytes_are_an_answer_or_the_model_s_error(runner: asyncio.Runner, seed: int) -> None:
    chance = random.Random(seed)
    take(runner, with_other_bytes(GOOD, chance) if seed % 8 else chance.randbytes(200), chance)


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_chunks_are_an_answer_or_the_model_s_error(runner: asyncio.Runner, seed: int) -> None:
    chance = random.Random(seed)

    def lines() -> Iterator[bytes]:
        for _ in range(chance.randrange(1, 4)):
            yield b"data: " + json.dumps(mutated(CHUNK, chance)).encode() + b"\n\n"

    take(runner, b"".join(lines()), chance)


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_refusal_is_the_model_s_error(seed: int) -> None:
    chance = random.Random(seed)
    body = json.dumps(mutated({"error": {"message": "no", "type": "t", "code": 7}}, chance))
    body = with_other_bytes(body.encode(), chance).decode(errors="replace")
    status = chance.choice([None, 200, 300, 400, 401, 404, 422, 429, 500, 999])
    error = refusal(status, body, "m", URL, "KEY", retry_after_seconds(chance.choice([body, str(seed), "1e999", None])))
    assert isinstance(error, LLMError)
    assert error.retry_after is None or 0 <= error.retry_after < float("inf")
    assert len(str(error)) < 1000
