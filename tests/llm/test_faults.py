"""What goes wrong on the way to a model, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest

from handiwork.llm.bounded_client import BoundedClient
from handiwork.llm.create import create
from handiwork.llm.errors import (
    AuthenticationError,
    ContextWindowError,
    EmptyAnswerError,
    LLMError,
    ModelNotFoundError,
    OutputLimitError,
    ProviderError,
    RateLimitError,
    RequestRejectedError,
    TemplateError,
)
from handiwork.llm.failure import refusal
from handiwork.llm.retry import (
    LONGEST_PAUSE,
    RATE_FACTOR,
    Patience,
    pause_before,
    retry_after_seconds,
    with_retries,
)
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import LLM, Completion, Message, ToolCall
from tests.llm.standin import Json, Refusal, StandIn, Stream, chunk, text

pytestmark = pytest.mark.slow

ASK = [Message.text("system", "Be brief."), Message.text("user", "go")]
Make = Callable[..., LLM]


def said(message: str, **rest: object) -> Json:
    return {"error": {"message": message, **rest}}


PASSING: dict[str, tuple[Refusal | Stream, str]] = {
    "rate limit": (Refusal(429, said("slow down"), {"retry-after": "0"}), "slow down"),
    "server error": (Refusal(500, said("oops")), r"HTTP 500.*oops"),
    "html from a proxy": (Refusal(502, "<html>Bad  gateway</html>"), "Bad gateway"),
    "overloaded": (Refusal(529, said("overloaded")), "HTTP 529"),
    "cut between chunks": (Stream(text("half an ans", finish=None), end="close"), "cut before its end"),
    "connection broken": (Stream(text("half", finish=None), end="abort"), "connection .* failed"),
    "nothing at all": (Stream([], end="close"), "cut before its end"),
    "garbage": (Stream(["data: {not json}\n\n"]), "no JSON"),
    "no object": (Stream(["data: [1]\n\n"]), "no object"),
    "another shape": (Stream([{"choices": [["x"]]}]), "another shape"),
    "a page instead of a stream": (Refusal(200, "<html>Log in</html>"), "cut before its end"),
    "empty answer": (Stream(text("")), "empty answer"),
    "an error instead of a stream": (Refusal(200, {"error": "Unexpected endpoint or method."}), "Unexpected endpoint"),
    "error in the stream": (Stream([chunk({"content": "a"}), said("upstream died")]), "upstream died"),
    "rate limit in the stream": (Stream([said("busy", code=429)]), r"limits the rate \(HTTP 429\): busy"),
}


@pytest.mark.parametrize("fault", PASSING)
async def test_a_passing_fault_is_tried_again_and_noted(server: StandIn, chat: Make, fault: str) -> None:
    plan, note = PASSING[fault]
    server.planned.append(plan)
    server.replies = [Reply(content="fine")]
    completion = await chat().complete(ASK)
    assert completion.content == "fine"
    assert len(completion.failed_attempts) == 1
    with pytest.raises(LLMError, match=note):
        raise LLMError(completion.failed_attempts[0])


LASTING: dict[str, tuple[Refusal | Stream, type[LLMError], str]] = {
    "wrong key": (Refusal(401, said("bad key")), AuthenticationError, "check HANDIWORK_API_KEY"),
    "key without rights": (Refusal(403, said("no access")), AuthenticationError, "no access"),
    "unknown model": (Refusal(404, said("no such thing")), ModelNotFoundError, "check the model's name"),
    "unknown model, as a bad request": (
        Refusal(400, said("x/y is not a valid model ID")),
        ModelNotFoundError,
        "has no model standin-1",
    ),
    "too long, OpenAI": (
        Refusal(400, said("This model's maximum is 8192.", code="context_length_exceeded")),
        ContextWindowError,
        "too long for standin-1",
    ),
    "too long, llama.cpp": (
        Refusal(400, said("the request exceeds it", type="exceed_context_size_error", n_ctx=4096)),
        ContextWindowError,
        "too long",
    ),
    "too long, Anthropic": (Refusal(400, said("prompt is too long: 9 > 8")), ContextWindowError, "9 > 8"),
    "too long, told in the stream": (
        Stream([said("the request exceeds the available context size")]),
        ContextWindowError,
        "too long",
    ),
    "too many bytes, Anthropic": (
        Refusal(413, said("Request exceeds the maximum size", type="request_too_large")),
        ContextWindowError,
        "exceeds the maximum size",
    ),
    "too many bytes, a proxy": (
        Refusal(413, "<html>413 Request Entity Too Large</html>"),
        ContextWindowError,
        "Entity Too Large",
    ),
    "a large picture among more than 20, Anthropic": (
        Refusal(400, said("image dimensions exceed max allowed size for many-image requests: 2000 pixels")),
        ContextWindowError,
        "2000 pixels",
    ),
    "other bad request": (Refusal(400, said("temperature out of range")), RequestRejectedError, "temperature"),
    "no credit": (
        Refusal(429, said("You exceeded your quota", code="insufficient_quota")),
        RequestRejectedError,
        "wants to be paid",
    ),
    "filtered": (Stream([chunk({}, "content_filter")]), RequestRejectedError, "filtered"),
    "all spent on thinking": (Stream([chunk({}, "length")]), OutputLimitError, "output limit"),
}


@pytest.mark.parametrize("fault", LASTING)
async def test_a_lasting_fault_is_not_tried_again(server: StandIn, chat: Make, fault: str) -> None:
    plan, kind, words = LASTING[fault]
    server.planned.append(plan)
    with pytest.raises(LLMError, match=words) as caught:
        await chat().complete(ASK)
    assert type(caught.value) is kind
    assert len(server.requests) == 1


async def test_an_empty_answer_is_asked_for_again_once(server: StandIn, chat: Make) -> None:
    server.planned += [Stream(text("", usage={"prompt_tokens": 90_000, "completion_tokens": 2}))] * 4
    with pytest.raises(EmptyAnswerError) as caught:
        await chat().complete(ASK)
    assert (len(server.requests), len(caught.value.discarded)) == (2, 2)


async def test_a_scripted_server_fails_once_where_its_script_says_so(server: StandIn, chat: Make) -> None:
    server.replies = [Reply(error="first"), Reply(content="a"), Reply(error="second"), Reply(content="b")]
    llm = chat()
    one = await llm.complete(ASK)
    two = await llm.complete([*ASK, Message.text("assistant", "a"), Message.text("user", "more")])
    assert (one.content, two.content) == ("a", "b")
    assert "first" in one.failed_attempts[0]
    assert "second" in two.failed_attempts[0]


async def test_a_template_whose_roles_must_alternate_is_served_from_then_on(server: StandIn, chat: Make) -> None:
    server.alternating = True
    asked = Message("assistant", (), (ToolCall("a", "run", "{}"),))
    talk = [*ASK, asked, Message.text("tool", "out", tool_call_id="a"), Message.text("user", "hurry")]
    server.replies = [Reply(content="")] * 2 + [Reply(content="fine")]
    llm = chat()
    first, second = await llm.complete(talk), await llm.complete(talk)
    assert ["roles must alternate" in note for note in first.failed_attempts] == [True]
    assert second.failed_attempts == ()


@pytest.mark.parametrize(
    "words", ["model only supports single tool-calls at once!", "System role not supported", "roles must alternate"]
)
async def test_what_a_template_refuses_is_written_as_it_wants_it(server: StandIn, chat: Make, words: str) -> None:
    calls = tuple(ToolCall(name, "run", "{}") for name in "ab")
    answers = [Message.text("tool", "out", tool_call_id=name) for name in "ab"]
    talk = [*ASK, Message("assistant", (), calls), *answers, Message.text("user", "hurry")]
    server.planned += [Refusal(400, said(words)), Stream(text("fine")), Stream(text("good"))]
    llm = chat()
    assert [(await llm.complete(talk)).content for _ in range(2)] == ["fine", "good"]
    refused, *others = [request["messages"] for request in server.requests]
    assert refused != others[0] == others[1]
    server.planned += [Refusal(400, said(words))]
    with pytest.raises(TemplateError):
        await llm.complete(talk)


async def test_a_temperature_that_is_refused_is_left_out_from_then_on(server: StandIn, chat: Make) -> None:
    words = "Unsupported value: 'temperature' does not support 0.8 with this model."
    server.planned += [Refusal(400, said(words)), Stream(text("fine")), Stream(text("good"))]
    llm = chat()
    assert [(await llm.complete(ASK, temperature=0.8)).content for _ in range(2)] == ["fine", "good"]
    assert [request.get("temperature") for request in server.requests] == [0.8, None, None]


async def test_attempts_are_limited_and_all_told(server: StandIn, chat: Make) -> None:
    server.planned += [Refusal(500, said(f"failure {n}")) for n in range(9)]
    with pytest.raises(ProviderError, match="failure 2") as caught:
        await chat(patience=Patience(attempts=3, pause=0.01)).complete(ASK)
    assert len(server.requests) == 3
    assert [note[-9:] for note in caught.value.failed_attempts] == ["failure 0", "failure 1"]


async def test_a_rate_limit_that_lasts_is_a_rate_limit_error(server: StandIn, chat: Make) -> None:
    server.planned += [Refusal(429, said("busy"), {"retry-after": "0"})] * 2
    with pytest.raises(RateLimitError):
        await chat(patience=Patience(attempts=2)).complete(ASK)


async def test_failed_attempts_before_a_lasting_fault_are_told_too(server: StandIn, chat: Make) -> None:
    server.planned += [Refusal(500, said("oops")), Refusal(401, said("no"))]
    with pytest.raises(AuthenticationError) as caught:
        await chat().complete(ASK)
    assert len(caught.value.failed_attempts) == 1


async def test_deltas_start_again_after_a_failed_attempt(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(text("ha", finish=None), end="close"))
    server.replies = [Reply(content="half")]
    pieces: list[str] = []
    await chat().complete(ASK, on_delta=pieces.append)
    assert pieces == ["ha", "half"]


async def test_done_without_a_finish_reason_is_an_end(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(text("all", finish=None)))
    assert (await chat().complete(ASK)).content == "all"


async def test_a_finish_reason_without_done_is_an_end(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(text("all"), end="close"))
    assert (await chat().complete(ASK)).content == "all"


@pytest.mark.parametrize("form", ["{}", "{}\n"], ids=["bare", "with a line feed"])
async def test_a_server_that_does_not_stream_answers_whole(server: StandIn, chat: Make, form: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    message = {"role": "assistant", "content": "one\ntwo", "tool_calls": [call]}
    whole = {"model": "standin-1", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    server.planned.append(Refusal(200, form.format(json.dumps({**whole, "usage": usage}))))
    completion = await chat().complete(ASK)
    assert (completion.content, completion.tool_calls) == ("one\ntwo", (ToolCall("a", "run", "{}"),))
    assert (completion.usage.input, completion.usage.output, completion.failed_attempts) == (10, 4, ())


async def test_silence_is_a_fault(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(text("ha", finish=None), end="hang"))
    server.replies = [Reply(content="fine")]
    completion = await chat(patience=Patience(silence=0.3, pause=0.01)).complete(ASK)
    assert completion.content == "fine"
    assert "sent nothing for 0.3 s" in completion.failed_attempts[0]
    await asyncio.wait_for(server.disconnected.wait(), 10)


async def test_comments_that_keep_the_connection_alive_are_no_silence(server: StandIn, chat: Make) -> None:
    waiting: list[Json | str] = [": processing\n\n"] * 8
    server.planned.append(Stream([*waiting, *text("fine")], pause=0.2))
    completion = await chat(patience=Patience(silence=1.5)).complete(ASK)
    assert completion.failed_attempts == ()


async def test_a_call_has_a_deadline_with_all_its_attempts(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(["data: {}\n\n"] * 10_000, pause=0.02))
    with pytest.raises(ProviderError, match=r"within 0\.5 s"):
        await chat(patience=Patience(deadline=0.5)).complete(ASK)


async def test_cancelling_closes_the_connection(server: StandIn, chat: Make) -> None:
    server.planned.append(Stream(text("ha", finish=None), end="hang"))
    call = asyncio.create_task(chat().complete(ASK))
    await server.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(server.disconnected.wait(), 10)


async def test_nobody_listening_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    llm = create("any", base_url=f"http://127.0.0.1:{port}/v1", patience=Patience(attempts=2, pause=0.01))
    with pytest.raises(ProviderError, match=f"connection to http://127.0.0.1:{port}/v1 failed") as caught:
        await llm.complete(ASK)
    assert len(caught.value.failed_attempts) == 1
    await llm.close()


async def test_a_connection_is_not_awaited_for_as_long_as_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as one, socket.socket() as other:
        for waiting in (one, other):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with BoundedClient(connect=0.2, timeout=None) as client:
            with pytest.raises(httpx2.ConnectTimeout):
                await client.get("http://{}:{}".format(*full.getsockname()), timeout=60)


def test_retry_after_is_seconds_or_a_date_and_bounded() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after_seconds("7") == 7.0
    assert 28 <= (retry_after_seconds(date) or 0) <= 30
    assert retry_after_seconds("Mon, 01 Jan 2001 00:00:00 GMT") == 0.0
    assert retry_after_seconds("soon") is None
    assert retry_after_seconds(None) is None
    assert pause_before(2, Patience(), 7.0) == 7.0
    assert pause_before(2, Patience(), 3600.0) == LONGEST_PAUSE


def test_pauses_grow_with_jitter_up_to_a_bound() -> None:
    patience = Patience(pause=1.0)
    for attempt, full in ((2, 1.0), (3, 2.0), (4, 4.0), (20, LONGEST_PAUSE)):
        assert full / 2 <= pause_before(attempt, patience, None) <= full


@pytest.mark.parametrize(
    ("error", "shortest", "longest"),
    [
        (ProviderError("oops"), 0.5, 1.0),
        (RateLimitError("busy"), RATE_FACTOR / 2, RATE_FACTOR),
        (RateLimitError("busy", retry_after=7.0), 7.0, 7.0),
        (refusal(529, said("Overloaded"), "m", "s", "K"), RATE_FACTOR / 2, RATE_FACTOR),
        (refusal(503, said("experiencing high demand"), "m", "s", "K"), RATE_FACTOR / 2, RATE_FACTOR),
        (refusal(None, said("x", type="overloaded_error"), "m", "s", "K"), RATE_FACTOR / 2, RATE_FACTOR),
    ],
    ids=["server error", "rate limit", "rate limit with Retry-After", "Anthropic", "Google", "in the stream"],
)
async def test_the_pause_after_a_rate_limit_or_an_overload_is_longer_unless_the_provider_names_it(
    error: LLMError, shortest: float, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    outcomes = iter([error, Completion("fine")])

    async def attempt() -> Completion:
        outcome = next(outcomes)
        if isinstance(outcome, LLMError):
            raise outcome
        return outcome

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert (await with_retries(Patience(pause=1.0), attempt)).content == "fine"
    assert [shortest <= pause <= longest for pause in pauses] == [True], pauses
