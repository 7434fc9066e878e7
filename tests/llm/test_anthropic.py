"""A provider with a protocol of its own, through pydantic-ai: Anthropic's messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from handiwork.events.base import Part
from handiwork.events.record import Usage
from handiwork.llm.errors import AuthenticationError, ContextWindowError, ModelNotFoundError, ProviderError
from handiwork.llm.retry import Patience, discarded_of
from handiwork.llm.types import LLM, Message, Tool, ToolCall
from tests.llm.anthropic_stream import block, reply, said
from tests.llm.standin import Refusal, StandIn, Stream

MODEL = "anthropic:claude-sonnet-4-6"
ASK = [Message.text("system", "Be brief."), Message.text("user", "go")]
TOOL = Tool("run", "Run a command.", {"type": "object", "properties": {"cmd": {"type": "string"}}})
Make = Callable[..., LLM]

THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "I should look."},
    {"type": "signature_delta", "signature": "c2lnbmVk"},
)
CALL = block(
    2,
    {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"cmd": '},
    {"type": "input_json_delta", "partial_json": '"ls"}'},
)


async def test_text_usage_and_price(server: StandIn, chat: Make) -> None:
    server.planned.append(reply(said("one\ntwo")))
    pieces: list[str] = []
    completion = await chat(MODEL).complete(ASK, on_delta=pieces.append)
    assert (completion.content, completion.finish_reason) == ("one\ntwo", "stop")
    assert "".join(pieces) == "one\ntwo"
    assert completion.usage == Usage(input=10, output=5, cache_read=70, cache_write=20)
    # The address is not the provider's own, so nobody knows what it costs.
    assert (completion.cost, completion.cost_source) == (None, "unknown")


async def test_the_prompt_of_a_broken_stream_is_counted_as_it_is_billed(server: StandIn, chat: Make) -> None:
    whole = reply(said("half an answer"))
    server.planned += [Stream(whole.events[:3], end="abort"), whole]
    completion = await chat(MODEL).complete(ASK)
    spent = [answer.usage for answer in completion.discarded]
    assert spent == [Usage(input=10, output=1, cache_read=70, cache_write=20)]


async def test_the_prompt_of_a_call_that_is_cancelled_is_counted_as_it_is_billed(server: StandIn, chat: Make) -> None:
    whole = reply(said("half an answer"))
    server.planned += [Stream(whole.events[:3], end="abort"), Stream(whole.events[:3], end="hang")]
    texts = asyncio.Queue[str]()
    call = asyncio.create_task(chat(MODEL).complete(ASK, on_delta=texts.put_nowait))
    for _ in range(2):
        await texts.get()
    call.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await call
    spent = [answer.usage for answer in discarded_of(caught.value)]
    assert spent == [Usage(input=10, output=1, cache_read=70, cache_write=20)] * 2


async def test_prompt_caching_is_on(server: StandIn, chat: Make) -> None:
    server.planned.append(reply(said("x")))
    await chat(MODEL).complete(ASK)
    request = server.requests[0]
    assert request["cache_control"]["type"] == "ephemeral"
    assert request["system"][-1]["cache_control"]["type"] == "ephemeral"
    assert request["stream"] is True


async def test_thinking_goes_back_with_its_signature(server: StandIn, chat: Make) -> None:
    server.planned += [reply(THOUGHT, said("Looking.", 1), CALL, stop="tool_use"), reply(said("done"))]
    llm = chat(MODEL)
    pieces: list[str] = []
    first = await llm.complete(ASK, tools=[TOOL], on_delta=pieces.append)
    assert pieces == ["Looking."]
    assert first.tool_calls == (ToolCall("toolu_1", "run", '{"cmd": "ls"}'),)
    assert first.thinking[0]["content"] == "I should look."
    turn = Message.text("assistant", first.content, tool_calls=first.tool_calls, thinking=first.thinking)
    await llm.complete([*ASK, turn, Message.text("tool", "file", tool_call_id="toolu_1")], tools=[TOOL])
    blocks = server.requests[1]["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use"]
    assert (blocks[0]["thinking"], blocks[0]["signature"]) == ("I should look.", "c2lnbmVk")
    assert blocks[2]["input"] == {"cmd": "ls"}


async def test_broken_arguments_and_dangling_calls_are_sent_in_order(server: StandIn, chat: Make) -> None:
    server.planned.append(reply(said("x")))
    turn = Message("assistant", (), (ToolCall("a", "run", '{"cmd'),))
    await chat(MODEL).complete([*ASK, turn, Message.text("user", "stop")], tools=[TOOL])
    _, assistant, user = server.requests[0]["messages"]
    assert assistant["content"][0]["input"] == {"arguments": '{"cmd'}
    assert [block["type"] for block in user["content"]] == ["tool_result", "text"]


async def test_an_image_travels_by_value(server: StandIn, chat: Make) -> None:
    server.planned.append(reply(said("a cat")))
    message = Message("user", (Part(text="what?"), Part(blob="00ff", media_type="image/png")))
    await chat(MODEL, blobs=bytes.fromhex).complete([message])
    image = server.requests[0]["messages"][0]["content"][1]
    assert (image["type"], image["source"]["data"]) == ("image", "AP8=")


@pytest.mark.parametrize(
    "plan",
    [
        Refusal(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        Refusal(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, {"retry-after": "0"}),
        Stream(reply(said("half")).events[:4], end="close"),
        Stream(reply(said("half")).events[:4], end="abort"),
        Stream([*reply(said("half")).events[:3], "event: content_block_delta\ndata: {garbage\n\n"], end="close"),
        Stream([], end="close"),
    ],
    ids=["overloaded", "rate limit", "cut", "broken", "garbage", "nothing"],
)
async def test_a_passing_fault_is_tried_again_once_each(server: StandIn, chat: Make, plan: Refusal | Stream) -> None:
    server.planned += [plan, reply(said("fine"))]
    completion = await chat(MODEL).complete(ASK)
    assert completion.content == "fine"
    assert len(completion.failed_attempts) == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "kind", "words", "expected"),
    [
        (401, "authentication_error", "invalid x-api-key", AuthenticationError),
        (404, "not_found_error", "model: claude-sonnet-4-6", ModelNotFoundError),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ContextWindowError),
    ],
)
async def test_a_lasting_fault_has_its_own_error(
    server: StandIn, chat: Make, status: int, kind: str, words: str, expected: type[Exception]
) -> None:
    server.planned.append(Refusal(status, {"type": "error", "error": {"type": kind, "message": words}}))
    with pytest.raises(expected, match=words):
        await chat(MODEL).complete(ASK)
    assert len(server.requests) == 1


async def test_a_key_that_a_base_url_refuses_is_the_one_that_was_sent_there(server: StandIn, chat: Make) -> None:
    server.planned.append(Refusal(401, {"type": "error", "error": {"type": "authentication_error", "message": "no"}}))
    with pytest.raises(AuthenticationError, match="; check HANDIWORK_API_KEY"):
        await chat(MODEL).complete(ASK)


async def test_silence_is_a_fault_and_closes_the_connection(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(reply(said("ha")).events[:3], end="hang"))
    with pytest.raises(ProviderError, match=r"sent nothing for 0\.3 s"):
        await chat(MODEL, patience=Patience(attempts=1, silence=0.3)).complete(ASK)
    await asyncio.wait_for(server.disconnected.wait(), 10)


async def test_silence_is_noticed_while_another_call_is_answered(server: StandIn, chat: Make) -> None:
    llm = chat(MODEL, patience=Patience(attempts=1, silence=1.0))
    server.planned += [reply(said("first")), Stream(reply(said("ha")).events[:3], end="hang")]
    await llm.complete(ASK)  # the library's first answer takes it a second
    server.arrived.clear()
    silent = asyncio.create_task(llm.complete(ASK))
    await server.arrived.wait()
    server.planned.append(Stream([{"type": "ping"}] * 15, end="close", pause=0.2))
    speaking = asyncio.create_task(llm.complete(ASK))
    with pytest.raises(ProviderError, match="sent nothing"):
        await silent
    assert not speaking.done()
    speaking.cancel()


async def test_cancelling_closes_the_connection(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(reply(said("ha")).events[:3], end="hang"))
    call = asyncio.create_task(chat(MODEL).complete(ASK))
    await server.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(server.disconnected.wait(), 10)


async def test_a_schema_is_native_output(server: StandIn, chat: Make) -> None:
    server.planned.append(reply(said('{"n": 1}')))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert (await chat(MODEL).complete(ASK, form=schema)).content == '{"n": 1}'
    assert "json_schema" in str(server.requests[0])


async def test_the_window_is_asked_of_the_provider_where_no_list_has_it(server: StandIn, chat: Make) -> None:
    server.pages["/v1/models/new-9"] = {"id": "new-9", "type": "model", "max_input_tokens": 300_000}
    server.planned.append(reply(said("x")))
    llm = chat("anthropic:new-9")
    assert llm.capabilities.window is None
    await llm.complete(ASK)
    assert llm.capabilities.window == 300_000
