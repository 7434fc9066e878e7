"""A small model with native tool calls: its tools change only when it calls one that it may not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.events.action import AgentFinishAction, CmdRunAction, FileWriteAction
from handiwork.events.base import Action, Event
from handiwork.events.observation import FileWriteObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities, Completion, Message, OnDelta, ReplyForm, Tool
from tests.agents.small_model import began
from tests.agents.states import reply, state_of
from tests.session.bench import call

WROTE: list[Event] = [
    *began("a.py"),
    reply("I write."),
    FileWriteAction(thought="I write.", path="a.py", content="1\n"),
    FileWriteObservation(path="a.py"),
]


class Native(ScriptedLLM):
    """A scripted model that keeps the names of the tools of each request."""

    def __init__(self, *replies: Reply | str) -> None:
        super().__init__(["I write.", *replies], capabilities=Capabilities(tools=True, window=16_384))
        self.offers: list[set[str]] = []

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        self.offers.append({tool.name for tool in tools})
        return await super().complete(messages, tools, form, on_delta, temperature)


async def last(llm: ScriptedLLM) -> Action:
    actions = await CodeActAgent(llm).step(state_of(*WROTE))
    assert isinstance(actions, list)
    return actions[-1]


async def test_a_request_offers_the_same_tools_after_work_as_before() -> None:
    llm = Native(call("bash", command="python3 a.py"))
    assert isinstance(await last(llm), CmdRunAction)
    assert llm.offers[0] >= {"bash", "finish", "reject"}
    assert len(llm.offers) == 1


@pytest.mark.parametrize(
    "refused",
    [call("reject", reason="no tests"), '```json\n{"name": "reject", "arguments": {"reason": "no tests"}}\n```'],
)
async def test_a_call_that_is_not_allowed_is_asked_for_again_without_its_tool(refused: Reply | str) -> None:
    """After work nothing is rejected: small models do that for want of a test."""
    llm = Native(refused, call("finish", message="done"), "change")
    assert isinstance(await last(llm), AgentFinishAction)
    assert llm.offers[0] - llm.offers[1] == {"reject", "modify_task"}
