"""CodeActAgent hands work over: to an agent with inputs of its own, and to several children side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from handiwork.events.observation import AgentDelegateObservation, ErrorObservation, ForkObservation
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities, Completion, Message, OnDelta, ReplyForm, Tool, ToolCall
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from tests.session.bench import Bench, calls, finish

READER = "tests.session.test_delegation:Reader"


def delegate(**arguments: Any) -> Reply:
    return calls(("delegate", {"task": "a", "agent": READER, **arguments}))


async def test_a_delegation_has_the_inputs_that_the_model_gives(bench: Bench) -> None:
    replies = [delegate(inputs={"lines": 0}), delegate(inputs={"lines": 2}), delegate(inputs="two"), finish()]
    state = await (await bench.session(replies)).run("Read it.")
    found = [o for _, o in state.history if isinstance(o, ErrorObservation | AgentDelegateObservation)]
    refused, delegated, malformed = found
    assert "lines: Input should be greater than or equal to 1" in refused.text
    assert isinstance(delegated, AgentDelegateObservation)
    assert delegated.outputs == {"read": ["a", "a"]}
    assert malformed.text == "The arguments of delegate do not fit: inputs is an object"


class Forking:
    """Forks a child for each colour, which writes it into the same file and finishes; then it finishes itself."""

    name = "forking"
    capabilities = Capabilities()

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        task, acted = messages[1].content[0].text, messages[-1].role == "tool"
        if acted:
            call = ToolCall("c2", "finish", f'{{"message": "{task}"}}')
        elif task == "paint":
            call = ToolCall("c1", "fork", '{"tasks": ["red", "blue"]}')
        else:
            call = ToolCall("c1", "write", f'{{"path": "colour", "content": "{task}\\n"}}')
        return Completion("", (call,))


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
async def test_children_try_several_ways_and_the_files_stay(tmp_path: Path, sandbox: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "colour").write_text("none\n")
    config = SessionConfig(agent="CodeActAgent", model="forking", workspace=str(project), sandbox=sandbox)
    async with Store.open(tmp_path / "data") as store:
        session = await create(store, tmp_path / "data", config, lambda _: None, "paint", llm=Forking())
        try:
            state = await session.run("paint")
            files = session.config.files(tmp_path / "data/sessions" / session.id)
            changed = [change.path for change in files.changes()]
        finally:
            await session.close()
    assert (state.agent_state, state.outputs) == ("finished", {"message": "paint"})
    (forked,) = [o for _, o in state.history if isinstance(o, ForkObservation)]
    assert [child.outputs for child in forked.outcomes] == [{"message": "red"}, {"message": "blue"}]
    assert ["+red" in forked.outcomes[0].diff, "+blue" in forked.outcomes[1].diff] == [True, True]
    assert changed == []
