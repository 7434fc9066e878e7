"""What a guided model is offered after its work: neither what repeats it or the task, nor what denies it."""

from __future__ import annotations

from typing import Literal

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.offer import COMMANDERS, next_offered, repeated
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.events.action import AgentDelegateAction, FileWriteAction, MessageAction
from handiwork.events.observation import AgentDelegateObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.states import reply, state_of, task

TEXT = Capabilities(tools=False, schema=False, window=16_384)


@pytest.mark.parametrize("outcome", ["finished", "rejected"])
async def test_after_a_repair_the_model_is_told_to_finish_and_does_not_reject(
    outcome: Literal["finished", "rejected"],
) -> None:
    """Small models go on to commit, and reject the task if there is no repository."""
    state = state_of(
        task("The tests fail. Repair the code."),
        WorkspaceOverviewAction(budget=9),
        WorkspaceOverviewObservation(),
        AgentDelegateAction(agent="RepairAgent"),
        AgentDelegateObservation(agent="RepairAgent", outcome=outcome, content=f"RepairAgent {outcome}."),
    )
    offered = {tool.name for tool in next_offered(state, TOOLS)}
    assert ("reject" in offered) is (outcome == "rejected")
    llm = ScriptedLLM(["```bash\nls\n```"], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    told = "RepairAgent finished.\nIf the task asks for nothing more, `finish` now."
    assert (told in llm.requests[0][-1].content[0].text) is (outcome == "finished")


def test_a_write_that_is_repeated_inside_a_block_of_bash_takes_commands_away_too() -> None:
    write = FileWriteAction(path="a.py", content="1\n")
    state = state_of(task("Make a.py."), reply("```write a.py\n1\n```"), write, FileWriteObservation(path="a.py"))
    assert repeated(state, [write], TOOLS, TOOLS) == {"write"}
    without = [tool for tool in TOOLS if tool.name != "write"]
    assert repeated(state, [write], TOOLS, without) == {"write", *COMMANDERS}


@pytest.mark.parametrize(
    ("question", "echoes"),
    [("Which lamps are on?", True), ("What lamps are on?", True), ("Which of them?", False), ("Is it on?", False)],
)
def test_a_question_of_the_user_is_not_asked_back(question: str, echoes: bool) -> None:
    state = state_of(task("Tell me: which lamps are on? Write it down."))
    ask = MessageAction(content=question, wait_for_response=True)
    assert ("ask" in repeated(state, [ask], TOOLS, TOOLS)) is echoes
