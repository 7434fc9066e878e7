"""Skills that ask the session's model about a picture: the call is made, recorded and bounded outside the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from handiwork.events.action import ChangeAgentStateAction
from handiwork.events.observation import IPythonRunCellObservation
from handiwork.events.record import CompletionEvent, Usage
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities, Completion, Message
from tests.notebook.cells import png
from tests.session.bench import Bench, call, finish

pytestmark = pytest.mark.slow

SEEING = Capabilities(vision=True)


def outputs(bench: Bench) -> list[IPythonRunCellObservation]:
    return [event for event in bench.events if isinstance(event, IPythonRunCellObservation)]


def look(task: str = "Which colour?", path: str = "a.png") -> Any:
    return call("ipython", code=f"parse_image({path!r}, {task!r})\nprint('and on')")


async def test_the_model_answers_and_the_call_is_recorded(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(png(3, 2))
    session = await bench.session(
        [look(), "It is black.", look("And now?"), "Still black.", finish()], capabilities=SEEING
    )
    state = await session.run("look")
    assert state.agent_state == "finished"
    assert [cell.content for cell in outputs(bench)] == ["It is black.\nand on\n", "Still black.\nand on\n"]
    (question,) = bench.llm.requests[1]
    text, picture = question.content
    assert (question.role, text.text, picture.media_type) == ("user", "Which colour?", "image/png")
    assert (await bench.store.blobs.get(picture.blob or "")).startswith(b"\x89PNG")
    assert [event.response["content"] for event in bench.events if isinstance(event, CompletionEvent)][1::2][:2] == [
        "It is black.",
        "Still black.",
    ]
    assert state.usage.total == sum(e.usage.total for e in bench.events if isinstance(e, CompletionEvent))


async def test_a_model_that_takes_no_pictures_is_not_asked(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(png())
    session = await bench.session([look(), finish()])
    await session.run("look")
    (cell,) = outputs(bench)
    assert (cell.error, cell.content) == ("SkillError", "ERROR: The model scripted takes no pictures.\n")
    assert len(bench.llm.requests) == 2


async def test_a_limit_stops_the_question_and_then_the_session(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(png())
    first = look().model_copy(update={"usage": Usage(input=5)})
    session = await bench.session([first, "never said", finish()], capabilities=SEEING, tokens=1)
    state = await session.run("look")
    (cell,) = outputs(bench)
    assert cell.error == "SkillError"
    assert "The model did not answer: " in cell.content
    assert (state.agent_state, len(bench.llm.requests)) == ("paused", 1)


async def test_what_is_no_picture_is_said(bench: Bench) -> None:
    (bench.workspace / "a.png").write_text("no picture")
    session = await bench.session([look(), finish()], capabilities=SEEING)
    await session.run("look")
    assert "a.png cannot be read as image: cannot identify" in outputs(bench)[0].content


class ThinkingLLM(ScriptedLLM):
    """Thinks about pictures for ever."""

    async def complete(self, messages: Sequence[Message], *rest: Any, **named: Any) -> Completion:
        if any(part.blob for part in messages[-1].content):
            self.thinking = True
            await asyncio.Event().wait()
        return await super().complete(messages, *rest, **named)

    thinking = False


async def test_an_interrupt_ends_the_question_and_the_next_cell_runs(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(png())
    llm = ThinkingLLM([look(), call("ipython", code="print('alive')"), finish()], capabilities=SEEING)
    session = await bench.session([], llm=llm)
    running = asyncio.create_task(session.run("look"))
    async with asyncio.timeout(60):
        while not llm.thinking:
            await asyncio.sleep(0.01)
        await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
        await running
    assert outputs(bench)[0].status == "interrupted"
    await session.run("go on")
    assert outputs(bench)[1].content == "alive\n"


async def test_a_cell_that_goes_on_alone_gets_no_answer(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(png())
    code = "import time\ntry:\n    parse_image('a.png')\nexcept Exception as error:\n    print(error)"
    llm = ThinkingLLM([call("ipython", code=code, timeout=1), finish()], capabilities=SEEING)
    session = await bench.session([], llm=llm)
    await session.run("look")
    assert outputs(bench)[0].status == "timeout"
