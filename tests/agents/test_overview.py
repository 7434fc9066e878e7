"""The overview of the workspace: a small model reads all of it, and a very small window gets a shorter one."""

from __future__ import annotations

import pytest

from handiwork.agents.base import Agent
from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.monologue import MonologueAgent
from handiwork.agents.planner import PlannerAgent
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.states import state_of, task


@pytest.mark.parametrize(("window", "budget"), [(8_192, 8_192), (12_000, 12_000), (16_384, 12_000)])
@pytest.mark.parametrize("agent", [CodeActAgent, MonologueAgent, PlannerAgent])
async def test_it_has_a_character_for_each_token_of_a_very_small_window(
    agent: type[Agent], window: int, budget: int
) -> None:
    llm = ScriptedLLM([], capabilities=Capabilities(tools=False, window=window))
    look = await agent(llm).step(state_of(task()))
    assert isinstance(look, WorkspaceOverviewAction)
    assert look.budget == budget


async def test_a_small_model_reads_all_of_it() -> None:
    names = [f"part{number}.txt" for number in range(290)]
    text = "Files:\n" + "\n\n".join(f"{name}:\n```\n{name} is here\n```" for name in names)
    assert 11_000 < len(text) < 12_000
    overview = WorkspaceOverviewObservation(content=text, paths=tuple(names), files=290, shown=tuple(names))
    llm = ScriptedLLM(["change", "```bash\nls\n```"], capabilities=Capabilities(False, False, window=16_384))
    await CodeActAgent(llm).step(state_of(task(), WorkspaceOverviewAction(budget=12_000), overview))
    prompt = "\n".join(part.text or "" for message in llm.requests[-1] for part in message.content)
    assert all(f"{name} is here" in prompt for name in names)
