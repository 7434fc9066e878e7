"""What a model behind an OpenAI-compatible server answers, counts and costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.events.base import Part
from handiwork.events.record import Usage
from handiwork.llm.errors import RequestRejectedError
from handiwork.llm.openai_compatible.endless_text import LONGEST_PERIOD, PERIODIC, SAME_LINES, EndlessText
from handiwork.llm.openai_compatible.model import ChatLLM, ServerAddress
from handiwork.llm.price import price
from handiwork.llm.scripted.script import Reply, ScriptedCall
from handiwork.llm.types import LLM, Message, Tool, ToolCall
from tests.llm.standin import StandIn, Stream, chunk, text

ASK = [Message.text("system", "Be brief."), Message.text("user", "go")]
TOOL = Tool("run", "Run a command.", {"type": "object", "properties": {"cmd": {"type": "string"}}})
Make = Callable[..., LLM]


async def test_text_arrives_in_pieces_and_whole(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="one\ntwo\n")]
    pieces: list[str] = []
    completion = await chat().complete(ASK, on_delta=pieces.append)
    assert pieces == ["one\n", "two\n"]
    assert (completion.content, completion.finish_reason, completion.model) == ("one\ntwo\n", "stop", "standin-1")
    assert completion.first_token is not None
    assert completion.first_token <= completion.latency


@pytest.mark.parametrize("indent", [None, 2])
async def test_a_server_that_does_not_stream_answers_by_one_object(
    server: StandIn, chat: Make, indent: int | None
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "one\ntwo"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    answer = json.dumps({"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}, indent=indent)
    server.planned.append(Stream([answer], "close"))
    completion = await chat().complete(ASK)
    assert (completion.content, completion.finish_reason) == ("one\ntwo", "stop")
    assert (completion.usage.input, completion.usage.output) == (5, 2)


async def test_an_answer_that_repeats_itself_without_end_is_cut(server: StandIn) -> None:
    async def connect() -> ServerAddress:
        return ServerAddress(server.base_url)

    endless = "Calls:\n" + "".join(f"- a.py: f({n})\n\n" for n in range(SAME_LINES + 20))
    for cuts, end in ((True, "hang"), (False, "done")):
        server.planned.append(Stream(text(endless), end))
        model = ChatLLM("standin-1", "standin-1", connect, free=True, cuts_repetition=cuts)
        completion = await model.complete(ASK)
        await model.close()
        if cuts:
            assert completion.content == "Calls:\n- a.py: f(0)\n\n- a.py: f(1)\n\n- a.py: f(2)\n"
            assert completion.finish_reason == "length"
            assert completion.usage.output > 40
        else:
            assert completion.content == endless


LINES = st.sampled_from(["x = 1\n", "}\n", "row 7\n", "row 8\n", "\n"])


@given(st.lists(st.tuples(LINES, st.integers(1, 60)), min_size=1, max_size=6), st.integers(1, 30))
def test_only_many_lines_of_one_shape_in_a_row_are_endless(runs: list[tuple[str, int]], size: int) -> None:
    """Lines without a letter may be the rows of a table."""
    lines = [line for line, times in runs for _ in range(times)]
    found = read("".join(lines), size)
    shapes = ["row" if line.startswith("row") else line for line in lines if line.strip()]
    lengths = [len(list(same)) for shape, same in groupby(shapes) if shape != "}\n"]
    assert found.is_endless == (max(lengths, default=0) >= SAME_LINES)


@given(
    st.text(alphabet="ab ", max_size=40),
    st.text(alphabet="xyz, ", min_size=1, max_size=LONGEST_PERIOD),
    st.integers(1, 30),
)
def test_a_passage_that_repeats_without_end_is_kept_once(begin: str, passage: str, size: int) -> None:
    times = 2 * PERIODIC // len(passage)
    found = read(f"{begin}{passage * times}", size)
    assert found.is_endless
    assert found.kept <= len(begin) + PERIODIC + len(passage)
    assert not read(f"{begin}{passage * (PERIODIC // len(passage) // 2)}", size).is_endless


def test_a_table_of_numbers_may_be_long() -> None:
    assert not read("".join(f"{n},{n * n % 97}\n" for n in range(500)), 7).is_endless


def read(text: str, size: int) -> EndlessText:
    """Let it read the text in pieces of this size."""
    found = EndlessText()
    for start in range(0, len(text), size):
        found.add(text[start : start + size])
    return found


ASKING = "I could run\n```bash\nrm -rf build\n```\nbut that deletes it."


@pytest.mark.parametrize(
    ("whole", "answer", "thought"),
    [
        (f"<think>\n{ASKING}\n</think>\n\nI look first.", "I look first.", ASKING),
        (f"{ASKING}\n</think>\n\nI look first.", "I look first.", ASKING),
        ("```write a.md\ntext\n</think>\n```", "```write a.md\ntext\n</think>\n```", ""),
        ("The tag </think> ends it.", "The tag </think> ends it.", ""),
    ],
)
async def test_reasoning_in_the_text_is_none_of_the_answer(
    server: StandIn, chat: Make, whole: str, answer: str, thought: str
) -> None:
    server.replies = [Reply(content=whole)]
    completion = await chat().complete(ASK)
    assert completion.content == answer
    assert [part["content"] for part in completion.thinking] == ([thought] if thought else [])
    with_call = Message.text("assistant", answer, tool_calls=(ToolCall("1", "f", "{}"),), thinking=completion.thinking)
    server.replies = [Reply(content="x")] * 2
    await chat().complete([*ASK, with_call])
    assert ASKING not in json.dumps(server.requests[-1]["messages"])


async def test_reasoning_that_does_not_end_is_no_answer(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(text("<think>\nI could", finish="length")))
    with pytest.raises(RequestRejectedError, match="used up its output limit before it answered"):
        await chat().complete(ASK)


async def test_usage_is_asked_for_and_streaming_is_on(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="x")]
    await chat().complete(ASK, tools=[TOOL], temperature=0.5)
    request = server.requests[0]
    assert request["stream"] is True
    assert request["stream_options"] == {"include_usage": True}
    assert request["temperature"] == 0.5
    assert request["tools"][0]["function"]["parameters"] == TOOL.parameters
    assert request["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
    ]


async def test_a_schema_becomes_a_strict_response_format(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="{}")]
    await chat().complete(ASK, form={"type": "object"})
    wanted = {"name": "reply", "strict": True, "schema": {"type": "object"}}
    assert server.requests[0]["response_format"] == {"type": "json_schema", "json_schema": wanted}


async def test_several_tool_calls_are_put_together(server: StandIn, chat: Make) -> None:
    calls = (ScriptedCall(name="run", arguments={"cmd": "ls"}), ScriptedCall(name="run", arguments='{"broken'))
    server.replies = [Reply(content="thus", tool_calls=calls)]
    completion = await chat().complete(ASK, tools=[TOOL])
    assert [(call.name, call.arguments) for call in completion.tool_calls] == [
        ("run", '{"cmd": "ls"}'),
        ("run", '{"broken'),
    ]


async def test_calls_that_share_an_index_are_told_apart_by_their_ids(server: StandIn, chat: Make) -> None:
    def call(call_id: str) -> dict[str, object]:
        return {"tool_calls": [{"index": 0, "id": call_id, "function": {"name": "run", "arguments": "{}"}}]}

    server.planned.append(Stream([chunk(call("a")), chunk(call("b")), chunk({}, "tool_calls")]))
    completion = await chat().complete(ASK, tools=[TOOL])
    assert [call.id for call in completion.tool_calls] == ["a", "b"]


async def test_calls_without_index_or_id_get_ids(server: StandIn, chat: Make) -> None:
    pieces = [
        chunk({"tool_calls": [{"function": {"name": "run", "arguments": '{"cmd"'}}]}),
        chunk({"tool_calls": [{"function": {"arguments": ': "ls"}'}}]}),
        chunk({}, "stop"),
    ]
    server.planned.append(Stream([*pieces]))
    (call,) = (await chat().complete(ASK, tools=[TOOL])).tool_calls
    assert json.loads(call.arguments) == {"cmd": "ls"}
    assert call.id


async def test_cached_tokens_are_not_counted_twice(server: StandIn, chat: Make) -> None:
    used = Usage(input=10, output=5, cache_read=70, cache_write=20)
    server.replies = [Reply(content="x", usage=used)]
    assert (await chat().complete(ASK)).usage == used


async def test_an_unknown_price_is_unknown_and_not_zero(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="x", usage=Usage(input=1000, output=100))]
    completion = await chat("gpt-4o").complete(ASK)
    assert (completion.cost, completion.cost_source) == (None, "unknown")


async def test_the_price_the_provider_reports_is_taken(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="x", usage=Usage(input=10), cost=0.0125)]
    completion = await chat().complete(ASK)
    assert (completion.cost, completion.cost_source) == (0.0125, "provider")


def test_the_price_list_serves_only_the_providers_own_address() -> None:
    usage = Usage(input=1_000_000, cache_read=1_000_000)
    cost, source = price(usage, "gpt-4o", "https://api.openai.com/v1")
    plain, _ = price(Usage(input=2_000_000), "gpt-4o", "https://api.openai.com/v1")
    assert source == "price_list"
    assert cost is not None
    assert plain is not None
    assert 0 < cost < plain
    assert price(usage, "gpt-4o", "https://proxy.example/v1") == (None, "unknown")
    assert price(usage, "no-such-model", "https://api.openai.com/v1") == (None, "unknown")
    assert price(Usage(), "gpt-4o", "https://api.openai.com/v1") == (None, "unknown")


async def test_reasoning_goes_back_to_its_model_with_the_tool_call(server: StandIn, chat: Make) -> None:
    server.planned.append(
        Stream(
            [
                chunk({"reasoning_content": "hm, "}),
                chunk({"reasoning_content": "ls"}),
                chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "run", "arguments": "{}"}}]}),
                chunk({}, "tool_calls"),
            ]
        )
    )
    server.planned.append(Stream(text("done")))
    pieces: list[str] = []
    llm = chat()
    first = await llm.complete(ASK, tools=[TOOL], on_delta=pieces.append)
    assert pieces == []
    assert first.thinking[0]["content"] == "hm, ls"
    turn = Message("assistant", (), first.tool_calls, thinking=first.thinking)
    await llm.complete([*ASK, turn, Message.text("tool", "file", tool_call_id="c")], tools=[TOOL])
    assert server.requests[1]["messages"][2]["reasoning_content"] == "hm, ls"


async def test_signed_reasoning_details_are_joined_and_go_back(server: StandIn, chat: Make) -> None:
    details = [
        {"type": "reasoning.text", "index": 0, "text": "I "},
        {"type": "reasoning.text", "index": 0, "text": "see", "signature": "abc"},
    ]
    events = [chunk({"reasoning": "I ", "reasoning_details": [detail]}) for detail in details]
    server.planned.append(Stream([*events, *text("ok")]))
    (part,) = (await chat().complete(ASK)).thinking
    assert part["details"] == [{"type": "reasoning.text", "index": 0, "text": "I see", "signature": "abc"}]


async def test_an_image_travels_by_value(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="a cat")]
    message = Message("user", (Part(text="what?"), Part(blob="00ff", media_type="image/png")))
    await chat(blobs=bytes.fromhex).complete([message])
    assert server.requests[0]["messages"][0]["content"] == [
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AP8="}},
    ]


@pytest.mark.parametrize(("media_type", "kind"), [("audio/wav", "wav"), ("audio/mpeg", "mp3")])
async def test_a_sound_travels_by_value(server: StandIn, chat: Make, media_type: str, kind: str) -> None:
    server.replies = [Reply(content="a bell")]
    await chat(blobs=bytes.fromhex).complete([Message("user", (Part(blob="00ff", media_type=media_type),))])
    assert server.requests[0]["messages"][0]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "AP8=", "format": kind}}
    ]


@pytest.mark.parametrize(
    ("senses", "media_type", "problem"),
    [
        ({"vision": False, "audio": True}, "image/png", "standin-1 cannot see images"),
        ({"vision": True, "audio": False}, "audio/wav", "standin-1 cannot hear"),
        ({}, "audio/wav", "standin-1 cannot hear"),
    ],
)
async def test_a_model_that_cannot_take_a_part_gets_one_clear_error(
    server: StandIn, chat: Make, senses: dict[str, bool], media_type: str, problem: str
) -> None:
    settings = {"n_ctx": 4096}
    server.pages["/props"] = {"default_generation_settings": settings, "modalities": senses}
    with pytest.raises(RequestRejectedError, match=problem):
        await chat().complete([Message("user", (Part(blob="00", media_type=media_type),))])
    assert server.requests == []


async def test_a_sound_goes_to_a_model_that_hears_and_cannot_see(server: StandIn, chat: Make) -> None:
    settings = {"n_ctx": 4096}
    server.pages["/props"] = {"default_generation_settings": settings, "modalities": {"vision": False, "audio": True}}
    server.replies = [Reply(content="a bell")]
    message = Message("user", (Part(blob="00", media_type="audio/wav"),))
    assert (await chat(blobs=bytes.fromhex).complete([message])).content == "a bell"


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/props", {"default_generation_settings": {"n_ctx": 8192}}),
        ("/v1/models", {"data": [{"id": "other", "max_model_len": 5}, {"id": "standin-1", "max_model_len": 8192}]}),
        ("/api/ps", {"models": [{"name": "standin-1", "context_length": 8192}]}),
    ],
)
async def test_the_real_window_is_asked_of_the_server(
    server: StandIn, chat: Make, path: str, page: dict[str, object]
) -> None:
    server.pages[path] = page
    server.replies = [Reply(content="x")]
    llm = chat()
    assert llm.capabilities.window is None
    await llm.complete(ASK)
    assert llm.capabilities.window == 8192


async def test_one_connection_serves_many_calls(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(content="x")]
    llm = chat()
    for _ in range(3):
        await llm.complete(ASK)
    assert len(server.connections) == 1
