"""Another provider with a protocol of its own: Google's generateContent, whose signatures sit on tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from handiwork.events.record import Usage
from handiwork.llm.create import create
from handiwork.llm.errors import AuthenticationError, ContextWindowError
from handiwork.llm.types import LLM, Message, Tool, ToolCall
from tests.llm.standin import Json, Refusal, StandIn, Stream

pytestmark = pytest.mark.slow

MODEL = "google:gemini-2.5-flash"
ASK = [Message.text("system", "Be brief."), Message.text("user", "go")]
TOOL = Tool("run", "Run a command.", {"type": "object", "properties": {"cmd": {"type": "string"}}})
Make = Callable[..., LLM]


def piece(*parts: Json, finish: str | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    counts = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "totalTokenCount": 107,
    }
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash"}


async def test_text_and_usage(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream([piece({"text": "one "}), piece({"text": "two"}, finish="STOP")], end="close"))
    pieces: list[str] = []
    completion = await chat(MODEL, api_key="g-key").complete(ASK, on_delta=pieces.append)
    assert (completion.content, pieces) == ("one two", ["one ", "two"])
    assert completion.usage == Usage(input=40, output=7, cache_read=60)
    assert server.keys == ["g-key"]


async def test_the_signature_of_a_tool_call_goes_back_with_it(server: StandIn, chat: Make) -> None:
    call = {"functionCall": {"name": "run", "args": {"cmd": "ls"}}, "thoughtSignature": "c2lnbmVk"}
    server.planned.append(Stream([piece(call, finish="STOP")], end="close"))
    server.planned.append(Stream([piece({"text": "done"}, finish="STOP")], end="close"))
    llm = chat(MODEL)
    first = await llm.complete(ASK, tools=[TOOL])
    turn = Message("assistant", (), first.tool_calls, thinking=first.thinking)
    answer = Message.text("tool", "file", tool_call_id=first.tool_calls[0].id)
    await llm.complete([*ASK, turn, answer], tools=[TOOL])
    _, model, user = server.requests[1]["contents"]
    assert model["parts"][0]["functionCall"]["args"] == {"cmd": "ls"}
    assert model["parts"][0]["thoughtSignature"] == "c2lnbmVk"
    assert user["parts"][0]["functionResponse"]["name"] == "run"


async def test_the_answer_to_an_odd_call_names_its_tool_as_the_call_does(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream([piece({"text": "done"}, finish="STOP")], end="close"))
    call = Message.text("assistant", "", tool_calls=(ToolCall("c1", "multi_tool_use.parallel", "{}"),))
    answer = Message.text("tool", "There is no such tool.", tool_call_id="c1")
    await chat(MODEL).complete([*ASK, call, answer], tools=[TOOL])
    _, model, user = server.requests[0]["contents"]
    assert model["parts"][0]["functionCall"]["name"] == "multi_tool_use_parallel"
    assert user["parts"][0]["functionResponse"]["name"] == "multi_tool_use_parallel"


async def test_a_model_without_system_prompts_gets_them_with_the_task(server: StandIn, chat: Make) -> None:
    words = "Developer instruction is not enabled for models/gemma-3-27b-it"
    server.planned += [Refusal(400, {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}})] * 2
    server.planned += [Stream([piece({"text": "done"}, finish="STOP")], end="close")] * 3
    llm = chat("google:gemma-3-27b-it")
    await llm.open()
    side_by_side = await asyncio.gather(llm.complete(ASK), llm.complete(ASK))
    later = await llm.complete(ASK)
    assert [len(answer.failed_attempts) for answer in (*side_by_side, later)] == [1, 1, 0]
    assert ["systemInstruction" in request for request in server.requests] == [True, True, False, False, False]
    assert server.requests[-1]["contents"][0]["parts"] == [{"text": "Be brief."}, {"text": "go"}]


async def test_a_cut_stream_is_tried_again(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream([piece({"text": "ha"})], end="close"))
    server.planned.append(Stream([piece({"text": "half"}, finish="STOP")], end="close"))
    completion = await chat(MODEL).complete(ASK)
    assert (completion.content, len(completion.failed_attempts)) == ("half", 1)


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (403, "no permission", AuthenticationError),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (8)", ContextWindowError),
    ],
)
async def test_a_lasting_fault_has_its_own_error(
    server: StandIn, chat: Make, code: int, words: str, expected: type[Exception]
) -> None:
    server.planned.append(Refusal(code, {"error": {"code": code, "message": words, "status": "X"}}))
    with pytest.raises(expected, match=words[:10]):
        await chat(MODEL).complete(ASK)
    assert len(server.requests) == 1


@pytest.mark.parametrize("words", ["API key not valid. Please pass a valid one.", "API key expired. Please renew it."])
async def test_a_wrong_or_expired_key_is_a_refused_key_though_google_answers_with_400(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    body = {"code": 400, "message": words, "status": "INVALID_ARGUMENT", "details": [reason]}
    server.planned.append(Refusal(400, {"error": body}))
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.base_url.removesuffix("/v1"))
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "wrong")
    llm = create(MODEL)
    with pytest.raises(AuthenticationError, match=r"API key .*; check GEMINI_API_KEY"):
        await llm.complete(ASK)
    await llm.close()


async def test_the_window_is_asked_of_the_provider_where_no_list_has_it(server: StandIn, chat: Make) -> None:
    server.pages["/v1beta/models/gemini-9"] = {"name": "models/gemini-9", "inputTokenLimit": 1_048_576}
    server.planned.append(Stream([piece({"text": "x"}, finish="STOP")], end="close"))
    llm = chat("google:gemini-9", api_key="g-key")
    assert llm.capabilities.window is None
    await llm.complete(ASK)
    assert llm.capabilities.window == 1_048_576
