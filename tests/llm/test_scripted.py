"""The scripted model: the test seam of everything above, and a model of its own by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handiwork.events.record import Usage
from handiwork.llm.create import create
from handiwork.llm.errors import LLMError, ProviderError
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply, ScriptedCall, read_script
from handiwork.llm.types import Message

ASK = [Message.text("user", "go")]


def after(answers: int) -> list[Message]:
    return [*ASK, *(Message.text(role, "x") for _ in range(answers) for role in ("assistant", "user"))]


async def test_replies_come_in_order_whatever_is_asked() -> None:
    llm = ScriptedLLM(["one", "two"])
    assert (await llm.complete(ASK)).content == "one"
    assert (await llm.complete(ASK)).content == "two"


async def test_a_script_that_has_run_out_says_how_many_replies_it_has() -> None:
    llm = ScriptedLLM(["only"])
    await llm.complete(ASK)
    with pytest.raises(LLMError, match="the script has 1 replies"):
        await llm.complete(ASK)


@pytest.mark.parametrize(("answers", "expected"), [(0, "a"), (1, "b"), (2, "c")])
async def test_a_new_process_goes_on_after_the_replies_already_in_the_conversation(answers: int, expected: str) -> None:
    llm = ScriptedLLM([Reply(content="a"), Reply(content="b"), Reply(error="met before"), Reply(content="c")])
    assert (await llm.complete(after(answers))).content == expected


async def test_a_conversation_that_gets_shorter_does_not_repeat_replies() -> None:
    llm = ScriptedLLM(["a", "b", "c"])
    await llm.complete(after(0))
    await llm.complete(after(1))
    assert (await llm.complete(after(0))).content == "c"


async def test_an_error_is_raised_once_and_then_the_script_goes_on() -> None:
    llm = ScriptedLLM([Reply(error="overloaded"), Reply(content="fine")])
    with pytest.raises(ProviderError, match="overloaded"):
        await llm.complete(ASK)
    assert (await llm.complete(ASK)).content == "fine"


async def test_a_cancelled_call_gives_its_reply_back() -> None:
    llm = ScriptedLLM([Reply(content="slow", delay=3600), Reply(content="next")])
    call = asyncio.create_task(llm.complete(ASK))
    await asyncio.sleep(0)
    assert llm.requests
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    again = asyncio.create_task(llm.complete(ASK))
    await asyncio.sleep(0)
    assert not again.done()
    again.cancel()


async def test_content_arrives_line_by_line_and_costs_what_the_script_says() -> None:
    pieces: list[str] = []
    llm = ScriptedLLM([Reply(content="a\nb", usage=Usage(input=3, output=2), cost=0.25)])
    completion = await llm.complete(ASK, on_delta=pieces.append)
    assert pieces == ["a\n", "b"]
    assert (completion.cost, completion.cost_source, completion.usage.total) == (0.25, "scripted", 5)


async def test_arguments_can_be_broken_on_purpose() -> None:
    calls = (ScriptedCall(name="run", arguments='{"cmd": '), ScriptedCall(name="run", arguments={"cmd": "ls"}))
    completion = await ScriptedLLM([Reply(tool_calls=calls)]).complete(ASK)
    assert [call.arguments for call in completion.tool_calls] == ['{"cmd": ', '{"cmd": "ls"}']
    assert len({call.id for call in completion.tool_calls}) == 2


async def test_a_file_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "script.jsonl"
    file.write_text('{"content": "héllo"}\n\n{"tool_calls": [{"name": "finish"}]}\n')
    llm = create(f"scripted:{file}")
    assert (await llm.complete(ASK)).content == "héllo"
    assert (await llm.complete(ASK)).tool_calls[0].arguments == "{}"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"contents": "x"}', r"line 2: contents: Extra inputs"),
        ("{", r"line 2: the line: Invalid JSON"),
        ('{"tool_calls": [{}]}', r"line 2: tool_calls\.0\.name: Field required"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "script.jsonl"
    file.write_text('{"content": "fine"}\n' + line)
    with pytest.raises(LLMError, match=complaint):
        read_script(file)


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LLMError, match=r"cannot read the script .*nowhere"):
        create(f"scripted:{tmp_path}/nowhere")
