"""What a server refuses, in the words of real servers, and that it is remembered by address and model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handiwork.llm.errors import RequestRejectedError, UnsupportedError
from handiwork.llm.types import LLM, Grammar, Message, ReplyForm, Tool
from tests.llm.standin import Refusal, StandIn

ASK = [Message.text("user", "go")]
TOOL = Tool("run", "Run a command.", {"type": "object", "properties": {}})
FORM: ReplyForm = {"type": "object"}
WEEK = 7 * 24 * 3600
Make = Callable[..., LLM]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path))
    return tmp_path / "capabilities.json"


def refused(status: int, message: str) -> Refusal:
    return Refusal(status, {"error": {"message": message}})


NO_TOOLS = refused(400, "registry.ollama.ai/library/gemma:2b does not support tools")


@pytest.mark.parametrize(
    "refusal",
    [
        NO_TOOLS,
        refused(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        refused(500, "tools param requires --jinja flag"),
        refused(404, "No endpoints found that support tool use."),
        refused(400, "Function calling is not enabled for this model"),
        refused(400, "tool_choice: this model doesn't support it"),
    ],
    ids=lambda refusal: refusal.body["error"]["message"],
)
async def test_tools(server: StandIn, chat: Make, refusal: Refusal) -> None:
    server.planned.append(refusal)
    llm = chat()
    with pytest.raises(UnsupportedError):
        await llm.complete(ASK, tools=[TOOL])
    assert (llm.capabilities.tools, llm.capabilities.schema) == (False, True)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "message",
    [
        "'response_format' of type 'json_schema' is not supported by this model",
        "This model does not support structured output",
        "JSON mode is not enabled for models/gemma-3-27b-it",
        "Invalid schema for response_format 'reply': In context=('properties', 'new'), 'maxLength' is not permitted.",
    ],
)
async def test_schemas(server: StandIn, chat: Make, message: str) -> None:
    server.planned.append(refused(400, message))
    llm = chat()
    with pytest.raises(UnsupportedError):
        await llm.complete(ASK, form=FORM)
    assert (llm.capabilities.tools, llm.capabilities.schema) == (True, False)


@pytest.mark.parametrize(
    ("message", "tools", "form"),
    [
        ("temperature is not supported by this model", [TOOL], FORM),
        ("this model does not support tools", [], FORM),
        ("response_format is not supported", [TOOL], None),
        ("this model does not support tools", [], Grammar("root ::= [a-z]")),
    ],
)
async def test_a_refusal_of_something_else_teaches_nothing(
    server: StandIn, chat: Make, message: str, tools: list[Tool], form: ReplyForm | None
) -> None:
    server.planned.append(refused(400, message))
    llm = chat()
    with pytest.raises(RequestRejectedError) as caught:
        await llm.complete(ASK, tools=tools, form=form)
    assert not isinstance(caught.value, UnsupportedError)
    assert (llm.capabilities.tools, llm.capabilities.schema) == (True, True)


async def known(chat: Make, model: str = "standin-1") -> bool:
    """Return whether a new client takes the model for one with tools."""
    llm = chat(model)
    await llm.open()
    return llm.capabilities.tools


async def test_the_next_client_knows_it_for_this_model_and_for_a_week(server: StandIn, chat: Make, cache: Path) -> None:
    server.planned.append(NO_TOOLS)
    with pytest.raises(UnsupportedError):
        await chat().complete(ASK, tools=[TOOL])
    assert [await known(chat), await known(chat, "another")] == [False, True]
    entries = json.loads(cache.read_text())
    cache.write_text(json.dumps({key: {**entry, "time": entry["time"] - WEEK - 60} for key, entry in entries.items()}))
    assert await known(chat)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}', "\x00"])
async def test_a_damaged_memory_is_none(server: StandIn, chat: Make, cache: Path, content: str) -> None:
    cache.write_text(content)
    assert await known(chat)
    server.planned.append(NO_TOOLS)
    with pytest.raises(UnsupportedError):
        await chat().complete(ASK, tools=[TOOL])
    assert not await known(chat)
