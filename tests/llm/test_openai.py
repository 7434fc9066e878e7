"""OpenAI's own models go through its Responses protocol, whose reasoning is handed back encrypted."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from handiwork.events.record import Usage
from handiwork.llm.create import create
from handiwork.llm.types import LLM, Message, Tool
from tests.llm.standin import QUICK, Json, StandIn, Stream

ASK = [Message.text("system", "Be brief."), Message.text("user", "go")]
TOOL = Tool("run", "Run a command.", {"type": "object", "properties": {"cmd": {"type": "string"}}})


@pytest.fixture
async def llm(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[LLM]:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    made = create("openai:gpt-5", api_key="sk-test", patience=QUICK)
    yield made
    await made.close()


def response(status: str, output: list[Json], usage: Json | None = None) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def events(*items: Json, ended: bool = True) -> Stream:
    out: list[Json | str] = [{"type": "response.created", "response": response("in_progress", [])}]
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        out.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            delta: Json = {"content_index": 0, "delta": item["content"][0]["text"], "logprobs": []}
            out.append({"type": "response.output_text.delta", **place, **delta})
        out.append({"type": "response.output_item.done", "output_index": index, "item": item})
    usage: Json = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 107,
    }
    if ended:
        out.append({"type": "response.completed", "response": response("completed", [*items], usage)})
    numbered: list[Json | str] = []
    for number, event in enumerate(out):
        assert isinstance(event, dict)
        numbered.append({**event, "sequence_number": number})
    return Stream(numbered, end="close")


def said(words: str) -> Json:
    content: list[Json] = [{"type": "output_text", "text": words, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


REASONING: Json = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "secret"}
CALL: Json = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "run",
    "arguments": '{"cmd": "ls"}',
    "status": "completed",
}


async def test_text_and_usage(server: StandIn, llm: LLM) -> None:
    server.planned.append(events(said("hello")))
    pieces: list[str] = []
    completion = await llm.complete(ASK, on_delta=pieces.append)
    assert (completion.content, "".join(pieces)) == ("hello", "hello")
    assert completion.usage == Usage(input=40, output=7, cache_read=60)
    assert (completion.cost, completion.cost_source) == (None, "unknown")


async def test_a_stream_without_its_last_event_is_tried_again(server: StandIn, llm: LLM) -> None:
    server.planned += [events(said("half"), ended=False), events(said("whole"))]
    completion = await llm.complete(ASK)
    assert (completion.content, len(completion.failed_attempts)) == ("whole", 1)


async def test_encrypted_reasoning_goes_back_before_its_call(server: StandIn, llm: LLM) -> None:
    server.planned += [events(REASONING, CALL), events(said("done"))]
    first = await llm.complete(ASK, tools=[TOOL])
    turn = Message("assistant", (), first.tool_calls, thinking=first.thinking)
    answer = Message.text("tool", "file", tool_call_id=first.tool_calls[0].id)
    await llm.complete([*ASK, turn, answer], tools=[TOOL])
    items = [item for item in server.requests[1]["input"] if item.get("type") not in (None, "message")]
    assert [item["type"] for item in items] == ["reasoning", "function_call", "function_call_output"]
    assert items[0]["encrypted_content"] == "secret"
    assert items[1]["call_id"] == items[2]["call_id"] == "call_1"
