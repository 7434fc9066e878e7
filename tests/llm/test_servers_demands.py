"""What particular servers demand of a conversation, or send, in the words and shapes of real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from handiwork.events.base import Part
from handiwork.llm.errors import ContextWindowError, RateLimitError, RequestRejectedError, UnsupportedError
from handiwork.llm.failure import refusal
from handiwork.llm.retry import Patience
from handiwork.llm.types import LLM, Message, Tool, ToolCall
from tests.llm import anthropic_stream
from tests.llm.standin import Refusal, StandIn, Stream, chunk, text

pytestmark = pytest.mark.slow

ASK = Message.text("user", "go")
TOOL = Tool("run", "Run a command.", {"type": "object", "properties": {}})
PICTURE = Message("user", (Part(blob="ab", media_type="image/png"),))
Make = Callable[..., LLM]


def called(call_id: str, **rest: object) -> list[Message]:
    """A conversation with one tool call and its answer."""
    call = Message.text("assistant", "", tool_calls=(ToolCall(call_id, "run", "{}"),), **rest)  # type: ignore[arg-type]
    return [ASK, call, Message.text("tool", "done", tool_call_id=call_id)]


def refused(message: str) -> Refusal:
    return Refusal(400, {"error": {"message": message}})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("usage", "cache_read", "cost"),
    [
        ({"cached_tokens": 12}, 12, None),
        ({"prompt_cache_hit_tokens": 12}, 12, None),
        ({"cost": 0.05, "cost_details": {"upstream_inference_cost": 1.0}}, 0, 0.05),
        ({"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 1.0}}, 0, 1.05),
        ({"cost": 0, "is_byok": True}, 0, 0.0),
    ],
)
async def test_cached_tokens_and_the_cost_of_the_user_s_own_key_are_counted(
    server: StandIn, chat: Make, usage: dict[str, object], cache_read: int, cost: float | None
) -> None:
    server.planned.append(Stream(text("x", usage={"prompt_tokens": 19, "completion_tokens": 13, **usage})))
    answer = await chat().complete([ASK])
    assert (answer.usage.input, answer.usage.cache_read) == (19 - cache_read, cache_read)
    assert answer.cost_source != "provider" if cost is None else answer.cost == cost


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"total_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 3}}, 4),
        ({"total_tokens": 17, "completion_tokens_details": {"reasoning_tokens": 3}}, 7),
        ({"total_tokens": 104}, 94),
        ({"total_tokens": 14}, 4),
    ],
)
async def test_reasoning_that_only_the_total_has_is_counted(
    server: StandIn, chat: Make, usage: dict[str, object], output: int
) -> None:
    server.planned.append(Stream(text("x", usage={"prompt_tokens": 10, "completion_tokens": 4, **usage})))
    assert (await chat().complete([ASK])).usage.output == output


async def test_what_comes_beside_a_call_goes_back_with_it(server: StandIn, chat: Make) -> None:
    extra = {"google": {"thought_signature": "abc"}}
    call = {"index": 0, "id": "c", "function": {"name": "run", "arguments": "{}"}, "extra_content": extra}
    server.planned.append(Stream([chunk({"tool_calls": [call]}), chunk({}, "tool_calls")]))
    server.planned.append(Stream(text("done")))
    llm = chat()
    first = await llm.complete([ASK], tools=[TOOL])
    turn = Message("assistant", (), first.tool_calls, thinking=first.thinking)
    await llm.complete([ASK, turn, Message.text("tool", "file", tool_call_id="c")], tools=[TOOL])
    assert server.requests[1]["messages"][1]["tool_calls"][0]["extra_content"] == extra


async def test_an_answer_that_the_server_broke_off_is_asked_for_again(server: StandIn, chat: Make) -> None:
    broken = Stream([chunk({"content": "I will"}), chunk({}, "insufficient_system_resource")])
    server.planned.extend([broken, Stream(text("done"))])
    completion = await chat(patience=Patience(pause=0.01)).complete([ASK])
    assert (completion.content, len(completion.failed_attempts)) == ("done", 1)


async def test_one_bad_picture_does_not_take_the_others_away(server: StandIn, chat: Make) -> None:
    server.planned.append(refused("You uploaded an unsupported image. Use one of the following formats: ['png']."))
    llm = chat(blobs=lambda _: b"png")
    with pytest.raises(RequestRejectedError) as caught:
        await llm.complete([PICTURE])
    assert not isinstance(caught.value, UnsupportedError)
    assert llm.capabilities.vision


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "unknown variant `image_url`, expected `text`"),
        (400, "deepseek-r1 is not a multimodal model"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (400, "This model does not support images"),
        (500, "failed to process inputs: this model is missing data required for image input"),  # Ollama
        (500, 'Unsupported content part type: "image_url"'),  # llama.cpp
        (400, "Invalid content type. image_url is only supported by certain models."),  # OpenAI
        (404, "No endpoints found that support image input"),  # OpenRouter
        (400, "'messages.1.content' : value must be a string"),  # Groq
    ],
)
async def test_a_model_that_takes_no_pictures_is_learned_and_remembered(
    server: StandIn, chat: Make, status: int, message: str
) -> None:
    server.planned.append(Refusal(status, {"error": {"message": message}}))
    llm = chat(blobs=lambda _: b"png")
    with pytest.raises(UnsupportedError):
        await llm.complete([PICTURE])
    assert not llm.capabilities.vision
    again = chat(blobs=lambda _: b"png")
    await again.open()
    assert not again.capabilities.vision
    with pytest.raises(RequestRejectedError, match="cannot see images"):
        await again.complete([PICTURE])


@pytest.mark.parametrize(
    "words",
    [
        "Tool call id was functions.run:0 but must be a-z, A-Z, 0-9, with a length of 9.",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
    ],
)
async def test_ids_of_another_models_calls_are_shortened_where_a_server_demands_it(
    server: StandIn, chat: Make, words: str
) -> None:
    server.planned += [refused(words), Stream(text("done"))]
    assert (await chat().complete(called("functions.run:0"), [TOOL])).content == "done"
    first, second = (request["messages"] for request in server.requests)
    assert first[1]["tool_calls"][0]["id"] == first[2]["tool_call_id"] == "functions.run:0"
    short = second[1]["tool_calls"][0]["id"]
    assert short == second[2]["tool_call_id"]
    assert len(short) == 9
    assert short.isalnum()


@pytest.mark.parametrize(
    "words", ["Tool call id was functions.run:0 but must be a-z, A-Z, 0-9.", "System role not supported"]
)
async def test_of_two_calls_side_by_side_each_meets_the_servers_demand(server: StandIn, chat: Make, words: str) -> None:
    server.planned += [refused(words)] * 2 + [Stream(text("done"))] * 2
    conversation = [Message.text("system", "Be brief."), *called("functions.run:0")]
    llm = chat()
    await llm.open()
    answers = await asyncio.gather(*[llm.complete(conversation, [TOOL]) for _ in range(2)])
    assert [answer.content for answer in answers] == ["done"] * 2
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("multi_tool_use.parallel", "multi_tool_use_parallel"),
        ("run<|channel|>json", "run__channel__json"),
        ("", "unknown"),
        ("r" * 90, "r" * 64),
    ],
)
async def test_a_call_of_a_tool_that_there_is_not_goes_back_by_a_name_that_servers_take(
    server: StandIn, chat: Make, name: str, sent: str
) -> None:
    call = Message.text("assistant", "", tool_calls=(ToolCall("c1", name, "{}"),))
    conversation = [ASK, call, Message.text("tool", "There is no such tool.", tool_call_id="c1")]
    server.planned += [Stream(text("done")), anthropic_stream.reply(anthropic_stream.said("done"))]
    await chat().complete(conversation, [TOOL])
    await chat("anthropic:claude-sonnet-4-6").complete(conversation, [TOOL])
    ours, anthropics = (request["messages"][1] for request in server.requests)
    assert ours["tool_calls"][0]["function"]["name"] == anthropics["content"][0]["name"] == sent


async def test_anthropic_gets_ids_of_its_own_letters(server: StandIn, chat: Make) -> None:
    server.planned.append(anthropic_stream.reply(anthropic_stream.said("done")))
    await chat("anthropic:claude-sonnet-4-6").complete(called("functions.run:0"), [TOOL])
    _, answer, outcome = server.requests[0]["messages"]
    assert answer["content"][0]["id"] == outcome["content"][0]["tool_use_id"]
    assert answer["content"][0]["id"].isalnum()


async def test_reasoning_is_sent_with_every_answer_where_a_server_demands_it(server: StandIn, chat: Make) -> None:
    words = "The `reasoning_content` in the thinking mode must be passed back to the API."
    server.planned += [refused(words), Stream(text("done"))]
    own = {"content": "I think.", "field": "reasoning_content", "model": "standin-1"}
    conversation = [
        *called("c1", thinking=(own,)),
        Message.text("assistant", "Which colour?"),
        Message.text("user", "red"),
    ]
    assert (await chat().complete(conversation, [TOOL])).content == "done"
    before, after = (
        [message.get("reasoning_content") for message in request["messages"] if message["role"] == "assistant"]
        for request in server.requests
    )
    assert before == ["I think.", None]
    assert after == ["I think.", " "]


async def test_stream_options_that_a_server_does_not_know_are_left_out_from_then_on(
    server: StandIn, chat: Make
) -> None:
    server.planned += [refused("Unrecognized request argument supplied: stream_options")]
    server.planned += [Stream(text("done")), Stream(text("again"))]
    llm = chat()
    assert [(await llm.complete([ASK])).content for _ in range(2)] == ["done", "again"]
    assert ["stream_options" in request for request in server.requests] == [True, False, False]


async def test_a_demand_that_is_met_and_refused_again_is_an_error(server: StandIn, chat: Make) -> None:
    server.planned += [refused("reasoning_content is missing")] * 3
    with pytest.raises(RequestRejectedError):
        await chat().complete([ASK])
    assert len(server.requests) == 2


async def test_text_and_thinking_in_blocks_are_read(server: StandIn, chat: Make) -> None:
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Okay."}]}]
    both = [{"type": "thinking", "thinking": [], "closed": True}, {"type": "text", "text": "Hi"}]
    events = [chunk({"content": thinking}), chunk({"content": both}), chunk({"content": "!"}, "stop")]
    server.planned.append(Stream([*events]))
    completion = await chat().complete([ASK])
    assert completion.content == "Hi!"
    assert completion.thinking == ({"content": "Okay.", "model": "standin-1"},)


async def test_pings_of_anthropic_are_no_silence(server: StandIn, chat: Make) -> None:
    first, *rest = anthropic_stream.reply(anthropic_stream.said("done")).events
    server.planned.append(Stream([first, *[{"type": "ping"}] * 6, *rest], end="close", pause=0.2))
    completion = await chat("anthropic:claude-sonnet-4-6", patience=Patience(attempts=1, silence=0.8)).complete([ASK])
    assert completion.content == "done"


@pytest.mark.parametrize(
    ("model", "path", "page"),
    [
        ("qwen", "/api/ps", {"models": [{"name": "qwen:latest", "context_length": 4096}]}),
        (
            "qwen",
            "/api/v0/models",
            {"data": [{"id": "qwen", "max_context_length": 131_072, "loaded_context_length": 4096}]},
        ),
    ],
    ids=["Ollama", "LM Studio"],
)
async def test_the_window_of_a_model_that_a_request_has_loaded_is_found(
    server: StandIn, chat: Make, model: str, path: str, page: dict[str, object]
) -> None:
    llm = chat(model)
    await llm.open()
    assert llm.capabilities.window is None
    server.planned += [Stream(text("one")), Stream(text("two"))]
    await llm.complete([ASK])
    server.pages[path] = page
    await llm.complete([ASK])
    assert llm.capabilities.window == 4096


async def test_lm_studio_may_load_a_model_with_a_smaller_window_than_its_largest(server: StandIn, chat: Make) -> None:
    entry = {"id": "qwen", "state": "not-loaded", "max_context_length": 131_072}
    server.pages["/api/v0/models"] = {"data": [entry]}
    llm = chat("qwen")
    await llm.open()
    assert llm.capabilities.window is None
    server.planned += [Stream(text("one")), Stream(text("two"))]
    await llm.complete([ASK])
    server.pages["/api/v0/models"] = {"data": [{**entry, "state": "loaded", "loaded_context_length": 4096}]}
    await llm.complete([ASK])
    assert llm.capabilities.window == 4096


@pytest.mark.parametrize(
    "message",
    [
        "Your request exceeded model token limit: 262144 (requested: 291351)",
        "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000",
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
        "Prompt exceeds max length",
        "Range of input length should be [1, 258048]",
        "`inputs` tokens + `max_new_tokens` must be <= 32768. Given: 40000 `inputs` tokens",
        "`inputs` must have less than 8192 tokens. Given: 9000",
        "Request body too large for gpt-4.1 model. Max size: 8000 tokens.",
    ],
)
def test_a_conversation_that_is_too_long_is_known_by_these_words(message: str) -> None:
    assert isinstance(refusal(400, {"error": {"message": message}}, "m", "server", "KEY"), ContextWindowError)


def test_a_request_with_more_tokens_than_a_minute_may_have_is_too_long() -> None:
    words = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 31756."
    assert isinstance(refusal(429, {"error": {"message": words}}, "m", "server", "KEY"), ContextWindowError)
    words = "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000."
    assert isinstance(refusal(429, {"error": {"message": words}}, "m", "server", "KEY"), RateLimitError)
