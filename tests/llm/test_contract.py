"""A conversation arrives as it was handed over, and each message's wire form is made once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from handiwork.events.base import Part
from handiwork.llm.normalise import Normaliser
from handiwork.llm.openai_compatible.wire import Wire, no_blobs
from handiwork.llm.pydantic_ai.parts import MessageParts
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import LLM, Message, ToolCall
from tests.llm.standin import StandIn


async def test_a_long_conversation_arrives_as_it_was_handed_over(server: StandIn, chat: Callable[..., LLM]) -> None:
    server.replies = [Reply(content="x")] * 60
    llm = chat()
    conversation = [Message.text("system", "s"), Message.text("user", "task")]
    for turn in range(50):
        call = ToolCall(f"c{turn}", "run", '{"cmd": "ls"}')
        conversation += [
            Message.text("assistant", f"thought {turn}", tool_calls=(call,)),
            Message.text("tool", f"output {turn}", tool_call_id=call.id),
        ]
        if turn % 25 == 24:
            await llm.complete(conversation)
    first, second = (request["messages"] for request in server.requests)
    assert [message["role"] for message in second[:4]] == ["system", "user", "assistant", "tool"]
    assert second[-1] == {"role": "tool", "content": "output 49", "tool_call_id": "c49"}
    assert second[: len(first)] == first


def test_the_wire_form_of_a_message_is_made_once() -> None:
    wire = Wire(no_blobs, "m")
    message = Message.text("user", "u")
    assert wire.texts([message])[0] is wire.texts([message])[0]
    twin = Message.text("user", "u")
    assert wire.texts([twin])[0] is not wire.texts([message])[0]


@pytest.mark.parametrize("form", [Wire(bytes.fromhex, "m").texts, MessageParts(bytes.fromhex, "anthropic").forms])
def test_what_left_the_conversation_is_forgotten(form: Callable[[list[Message]], object]) -> None:
    """Merged neighbours, images of answers, late answers and calls without one: all of them make new messages."""
    normaliser = Normaliser()
    picture = Part(blob="00ff", media_type="image/png")
    calls = tuple(ToolCall(name, "run", "{}") for name in ("a", "b"))
    conversation = [
        Message.text("user", "task"),
        Message.text("system", "hint"),
        Message.text("assistant", "", tool_calls=calls),
        Message("tool", (picture,), tool_call_id="a"),
        Message.text("tool", "late", tool_call_id="z"),
        Message.text("assistant", "so"),
        Message.text("assistant", "it is"),
    ]
    form(normaliser.normalise(conversation))
    known = [weakref.ref(message) for message in conversation]
    del conversation
    form(normaliser.normalise([Message.text("user", "another task")]))
    gc.collect()
    assert not any(message() for message in known)
