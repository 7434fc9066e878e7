"""What DelegatorAgent hands from one agent to the next."""

from __future__ import annotations

from handiwork.agents.delegator import CODE, STUDY, VERIFY, DelegatorAgent
from handiwork.events.action import AgentDelegateAction
from handiwork.events.base import Event
from handiwork.events.observation import AgentDelegateObservation
from handiwork.llm.scripted.model import ScriptedLLM
from tests.agents.states import state_of, task


def delegated(agent: str, **outputs: str) -> tuple[Event, Event]:
    action = AgentDelegateAction(agent=agent, inputs={"task": "What does add return?"})
    return action, AgentDelegateObservation(agent=agent, outcome="finished", outputs=outputs)


async def test_the_verifier_sees_the_answer_to_a_question() -> None:
    studied, answered = delegated(STUDY, summary="calc.py has add."), delegated(CODE, message="It returns the sum.")
    state = state_of(task("What does add return?"), *studied, *answered)
    verify = await DelegatorAgent(ScriptedLLM([])).step(state)
    assert isinstance(verify, AgentDelegateAction)
    assert verify.agent == VERIFY
    assert "What does add return?" in str(verify.inputs["task"])
    assert "It returns the sum." in str(verify.inputs["task"])
