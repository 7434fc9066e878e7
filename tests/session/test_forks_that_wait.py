"""Children of a fork keep their shells while the session waits for the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction, ForkAction
from handiwork.events.observation import CmdOutputObservation, ForkObservation
from handiwork.events.record import ApprovalEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create

HERE = __name__


class Exporter(Agent):
    """Sets a variable of its shell, and prints it in the next command."""

    def step(self, state: State) -> Step:
        outputs = [o.content.strip() for _, o in state.history if isinstance(o, CmdOutputObservation)]
        commands = [f"cd src && export COLOUR={state.task}", "echo $COLOUR in $(basename $PWD)"]
        if len(outputs) < len(commands):
            return CmdRunAction(command=commands[len(outputs)])
        return AgentFinishAction(outputs={"message": outputs[-1]})


class Splitter(Agent):
    """Forks two children, and finishes once they have."""

    def step(self, state: State) -> Step:
        if any(isinstance(o, ForkObservation) for _, o in state.history):
            return AgentFinishAction(outputs={"message": "both are done"})
        return ForkAction(children=tuple((f"{HERE}:Exporter", {"task": colour}) for colour in ("red", "blue")))


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
async def test_a_child_goes_on_in_its_own_shell_after_each_question(tmp_path: Path, sandbox: str) -> None:
    (tmp_path / "project/src").mkdir(parents=True)
    (tmp_path / "project/src/a").touch()
    config = SessionConfig(
        agent=f"{HERE}:Splitter",
        model="scripted",
        workspace=str(tmp_path / "project"),
        sandbox=sandbox,
        confirmation="always",
    )
    async with Store.open(tmp_path / "data") as store:
        session = await create(store, tmp_path / "data", config, lambda _: None, "a test", llm=ScriptedLLM([]))
        try:
            state = await session.run("Print the colours.")
            for _ in range(4):
                if state.agent_state != "awaiting_user_confirmation":
                    break
                answers = [ApprovalEvent(action=asked, allowed=True, source="user") for asked in state.totals.asked]
                await session.log.append(*answers)
                state = await session.run()
        finally:
            await session.close()
    assert state.agent_state == "finished", state.last_error
    (forked,) = [o for _, o in state.history if isinstance(o, ForkObservation)]
    assert [child.outputs for child in forked.outcomes] == [{"message": "red in src"}, {"message": "blue in src"}]
