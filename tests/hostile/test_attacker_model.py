"""A model server attacks the session that asks it."""

from __future__ import annotations

import gzip
import json
import re
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from handiwork.llm.create import create
from handiwork.llm.errors import LLMError, ProviderError, RedirectError
from handiwork.llm.retry import Patience
from handiwork.llm.types import LLM, Message
from tests.cli.program import Program
from tests.hostile.model_server import (
    EVENTS,
    OFFERED,
    ModelServer,
    ask,
    delta,
    endless,
    event,
    model_server,
    plain_answer,
)

pytestmark = pytest.mark.slow

ASK = [Message.text("user", "my secret plan")]
QUICK = Patience(attempts=2, silence=10.0, deadline=20.0, pause=0.01)


def packed() -> bytes:
    """400 MB of an answer, in gzip's form less than one: blocks that were flushed in full stand after each other."""
    text = delta(content="x" * 1000) * 1000
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    block = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + block * (OFFERED // len(text))


def fragments(*, anew: bool) -> bytes:
    """Pieces of one tool call without an end, or of ever new ones."""
    calls = [
        {"index": n if anew else 0, "id": f"c{n if anew else 0}", "function": {"name": "bash"}} for n in range(999)
    ]
    for call in calls:
        call["function"] = {"name": "bash", "arguments": "x" * (1 if anew else 500)}
    return b"".join(delta(tool_calls=[call]) for call in calls)


PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
FAILED = b"HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
COMPRESSED = EVENTS.replace(b"Connection", b"Content-Encoding: gzip\r\nConnection")
WITHOUT_END = {
    "text": (endless(EVENTS, delta(content="x" * 1000)), "more than 16 MB"),
    "reasoning": (endless(EVENTS, delta(reasoning="hmm" * 300)), "more than 16 MB"),
    "details": (endless(EVENTS, delta(reasoning_details=[{"type": "t", "text": "hm" * 400}])), "more than 16 MB"),
    "arguments": (endless(EVENTS, fragments(anew=False)), "more than 16 MB"),
    "calls": (endless(EVENTS, fragments(anew=True)), "more than 256 tool calls"),
    "line": (endless(EVENTS + b"data: ", b"x" * 65536), "more than 1 MB in one event"),
    "comments": (endless(EVENTS, b": still thinking" * 50 + b"\n\n"), "more than 64 MB"),
    "page": (endless(PAGE, b"<p>Log in</p>\n" * 500), "more than 1 MB in one event"),
    "error": (endless(FAILED, b"<p>Sorry</p>\n" * 500), "HTTP 500"),
    "brackets": (endless(EVENTS, b'data: {"choices":[' + b"[]," * 300_000 + b"[]]}\n\n"), "another shape"),
}


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, dict[str, Any]]]:
    """What became of one question to each of the servers without end, all asked by one process."""
    answers = {kind: answer for kind, (answer, _) in WITHOUT_END.items()}
    with model_server(first=plain_answer("hello"), **answers) as server:
        asked = ["first", *answers]
        found = dict(zip(asked, ask(*(("any", server.base_url(kind)) for kind in asked)), strict=True))
        for kind in answers:
            found[kind]["sent"] = sum(post.sent for post in server.posts(kind))
        yield found


@pytest.mark.parametrize("kind", WITHOUT_END)
def test_an_answer_without_end_stops_early_and_takes_little_memory(
    outcomes: dict[str, dict[str, Any]], kind: str
) -> None:
    assert outcomes["first"]["content"] == "hello"
    assert re.search(WITHOUT_END[kind][1], outcomes[kind]["words"])
    assert outcomes[kind]["growth"] < 60
    assert outcomes[kind]["sent"] < OFFERED / 4


def test_a_compressed_answer_is_refused_and_none_is_asked_for() -> None:
    bomb = packed()
    assert len(bomb) < OFFERED / 100
    with model_server(first=plain_answer("hello"), bomb=lambda: [COMPRESSED, bomb]) as server:
        _, outcome = ask(("any", server.base_url("first")), ("any", server.base_url("bomb")))
    assert "compressed answer" in outcome["words"]
    assert outcome["growth"] < 60
    assert "accept-encoding: identity" in server.posts("bomb")[0].head.lower()


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-6", "google:gemini-2.5-flash"])
def test_the_bounds_hold_for_the_clients_of_providers_too(model: str) -> None:
    bomb = packed()
    block = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 1000}}
    message: dict[str, Any] = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "model": "x",
        "content": [],
        "stop_reason": None,
    }
    message |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    begin = b"event: message_start\n" + event({"type": "message_start", "message": message})
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    begin += b"event: content_block_start\n" + event(start)
    candidate = {"content": {"role": "model", "parts": [{"text": "x" * 1000}]}, "index": 0}
    if model.startswith("anthropic"):
        flood = endless(EVENTS + begin, b"event: content_block_delta\n" + event(block))
    else:
        flood = endless(EVENTS, event({"candidates": [candidate]}))
    line = endless(EVENTS + b"data: ", b"x" * 65536)
    page = endless(PAGE, b"<p>Log in</p>\n" * 500)
    kinds = {"flood": flood, "line": line, "page": page, "bomb": lambda: [COMPRESSED, bomb]}
    with model_server(first=plain_answer(""), **kinds) as server:
        _, *found = ask(*((model, f"{server.url}/{kind}") for kind in ("first", *kinds)))
    words = [
        "4 million characters",
        "more than 1 MB in one event",
        "more than 1 MB in one event|Failed to decode",
        "compressed answer",
    ]
    for outcome, expected in zip(found, words, strict=True):
        assert re.search(expected, outcome["words"])
        assert outcome["growth"] < 60
    assert all(post.sent < OFFERED / 4 for post in server.received)


@pytest.mark.parametrize("model", ["any", "anthropic:claude-sonnet-4-6", "google:gemini-2.5-flash"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed_with_a_prompt(model: str, status: int) -> None:
    with model_server(elsewhere=plain_answer("mine now")) as thief:
        target = f"{thief.url}/elsewhere/v1/chat/completions"
        moved = (
            f"HTTP/1.1 {status} Moved\r\nLocation: {target}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
        )
        with model_server(moved=lambda: [moved]) as server:
            llm = create(model, base_url=f"{server.url}/moved", api_key="the-key", patience=QUICK)
            with pytest.raises(RedirectError, match=f"redirects to {thief.url} .*make the base URL the final one"):
                await llm.complete(ASK)
            await llm.close()
            assert len(server.posts("moved")) == 1
        assert thief.received == []


@pytest.mark.parametrize("location", ["http://[", "//", "http://user:pass@thief.example/x\x01", ""])
async def test_a_redirect_to_an_odd_address_is_an_error_too(location: str) -> None:
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {location}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
    with model_server(moved=lambda: [moved]) as server:
        llm = create("any", base_url=server.base_url("moved"), patience=QUICK)
        with pytest.raises(LLMError) as caught:
            await llm.complete(ASK)
        await llm.close()
    assert "user:pass" not in str(caught.value)


def each(*values: Any) -> tuple[Any, ...]:
    return values


def ending(**rest: Any) -> list[bytes]:
    """The end of an answer that says "hello", with these fields in its last chunk."""
    last: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **rest}
    return [EVENTS, delta(content="hello"), event(last), b"data: [DONE]\n\n"]


async def completion_of(server: ModelServer, kind: str, **capabilities: Any) -> Any:
    llm: LLM = create("any", base_url=server.base_url(kind), patience=Patience(attempts=1, deadline=20.0))
    try:
        return await llm.complete(ASK, **capabilities)
    finally:
        await llm.close()


FINE = {"prompt_tokens": 10, "completion_tokens": 5}
ODD_USAGE: list[Any] = [
    *("lots", 7, [1, 2], {}, None, True, {"prompt_tokens": {}}),
    *({**FINE, "prompt_tokens": odd} for odd in each(-1, "12", 1.5, None, True, [], {}, 10**30, 1e300)),
    *({**FINE, "completion_tokens": odd} for odd in each(-5, "12", 0.1, None, False, [3], {"a": 1}, 10**4000)),
    *({**FINE, "prompt_tokens_details": {"cached_tokens": odd}} for odd in each(-1, "3", 2.5, [1], {"a": 2}, 10**20)),
    *({**FINE, "prompt_tokens": "?", "cost": odd} for odd in each(-1, "free", True, [0], 10**400, {})),
]


@pytest.mark.parametrize("number", range(len(ODD_USAGE)))
async def test_odd_usage_is_unknown_and_never_free(number: int) -> None:
    with model_server(odd=lambda: ending(usage=ODD_USAGE[number])) as server:
        completion = await completion_of(server, "odd")
    assert completion.content == "hello"
    assert completion.usage.total == 0
    assert (completion.cost, completion.cost_source) == (None, "unknown")


async def test_details_of_usage_that_are_no_object_count_nothing() -> None:
    with model_server(odd=lambda: ending(usage={**FINE, "prompt_tokens_details": "many"})) as server:
        completion = await completion_of(server, "odd")
    assert completion.usage.total == 15


ODD_CHUNKS: list[bytes] = [
    *(delta(content=odd) for odd in each(7, ["a"], {"text": "a"}, True)),
    *(delta(reasoning=odd) for odd in each(7, ["a"])),
    *(delta(reasoning_details=odd) for odd in each("a", [7], 7, [{"text": [1]}])),
    *(delta(tool_calls=odd) for odd in each("a", 7, ["a"], [[]], [{"index": []}], [{"index": "a"}], [{"id": 7}])),
    *(delta(tool_calls=[{"index": 0, "function": odd}]) for odd in each("a", [1], {"name": 7}, {"name": ["a"]})),
    *(event({"choices": odd}) for odd in each("a", 7, [7], ["a"], [None], {"a": 1}, [{"delta": "a"}])),
    *(event({"choices": [{"delta": {"content": "a"}, "finish_reason": odd}]}) for odd in each(7, ["stop"], {"a": 1})),
    *(event({"model": odd, "choices": []}) for odd in each(7, ["a"], {"a": 1})),
    *(event({"error": odd}) for odd in each("a", 7, ["a"], {"code": "a"}, {"code": 10**9}, {"message": {"a": [1]}})),
    b'data: {"choices": [{"delta": {"content": "a", "x": NaN}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "a", "x": 1e999}}]}\n\n',
    b"data: " + b"[" * 100_000 + b"\n\n",
    b'data: {"a":' * 1 + b'{"a":' * 500 + b"1" + b"}" * 501 + b"\n\n",
    b"data: " + b"9" * 10_000 + b"\n\n",
    b"data: \xff\xfe\n\n",
    b"data:\n\n",
]


@pytest.mark.parametrize("number", range(len(ODD_CHUNKS)))
async def test_an_odd_answer_is_the_model_s_error(number: int) -> None:
    odd = [EVENTS, ODD_CHUNKS[number], *ending()[1:]]
    with model_server(odd=lambda: odd) as server, pytest.raises(LLMError) as caught:
        await completion_of(server, "odd")
    assert len(str(caught.value)) < 1000


async def test_half_a_character_does_not_reach_the_log_or_the_next_request() -> None:
    half = b'data: {"choices": [{"delta": {"content": "\\ud83d", "tool_calls": [{"id": "\\udc00", "function": '
    half += b'{"name": "\\ud800", "arguments": "\\udfff"}}]}}]}\n\n'
    with model_server(odd=lambda: [EVENTS, half, *ending()[1:]]) as server:
        completion = await completion_of(server, "odd")
    call = completion.tool_calls[0]
    assert [completion.content, call.id, call.name, call.arguments] == ["\ufffdhello", *"\ufffd" * 3]


@pytest.mark.parametrize("retry_after", ["nan", "inf", "-inf", "-5", "1e400", "Mon, 01 Jan 99999999999 00:00:00 GMT"])
async def test_an_odd_wish_to_wait_is_none(retry_after: str) -> None:
    busy = f"HTTP/1.1 503 Busy\r\nRetry-After: {retry_after}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
    with model_server(busy=lambda: [busy]) as server:
        llm = create("any", base_url=server.base_url("busy"), patience=QUICK)
        with pytest.raises(ProviderError, match="HTTP 503"):
            await llm.complete(ASK)
        await llm.close()


async def test_an_answer_that_drips_ends_at_the_deadline() -> None:
    def dripping() -> Iterator[bytes]:
        yield EVENTS
        while True:
            time.sleep(0.02)
            yield delta(content="x")

    with model_server(drip=dripping) as server:
        llm = create("any", base_url=server.base_url("drip"), patience=Patience(silence=5.0, deadline=0.4))
        with pytest.raises(ProviderError, match=r"did not answer in full within 0\.4 s"):
            await llm.complete(ASK)
        await llm.close()


def test_a_session_stops_at_an_answer_without_end_and_is_resumed(program: Program) -> None:
    with model_server(text=WITHOUT_END["text"][0]) as server:
        flags = ["--model", "any", "--base-url", server.base_url("text"), "--sandbox", "none"]
        stopped = program("run", "greet the world", *flags)
    assert stopped.returncode == 4
    assert "the model's server sent an answer that takes more than 16 MB" in stopped.stderr + stopped.stdout
    name = re.search(r"session (\w+)", stopped.stderr + stopped.stdout)
    assert name is not None
    script = program.script({"tool_calls": [{"name": "finish", "arguments": {"message": "Done."}}]})
    assert program("resume", name[1], "--model", script).returncode == 0


def test_what_a_server_says_sends_nothing_to_the_terminal(program: Program) -> None:
    sequence = "\x1b]0;mine\x07\x1b[2Jsorry\x9b2J"
    body = json.dumps({"error": {"message": sequence}}).encode()
    head = b"HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    with model_server(bad=lambda: [head, body]) as server:
        flags = ["--model", "any", "--base-url", server.base_url("bad"), "--sandbox", "none"]
        run = program("run", "greet the world", *flags)
    assert "sorry" in run.stdout + run.stderr
    assert not {"\x1b", "\x07", "\x9b"} & set(run.stdout + run.stderr)
