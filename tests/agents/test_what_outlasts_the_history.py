"""What stays known after steps have left an agent's view: outputs, jobs, and what the platform has told."""

from __future__ import annotations

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.offer import offered
from handiwork.agents.history import History
from handiwork.agents.monologue import monologue
from handiwork.agents.planner import recent
from handiwork.events.action import AgentDelegateAction, CmdRunAction, ForkAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, ForkObservation
from handiwork.events.record import CondensationEvent
from tests.agents.states import state_of, task

JOB: list[Event] = [
    CmdRunAction(command="npm start", background=True),
    CmdOutputObservation(command="npm start", status="background", job="job-1", exit_code=None),
]
LONG: list[Event] = [
    CmdRunAction(command="pytest -v"),
    CmdOutputObservation(command="pytest -v", content="a", tail="z", blob="3f" * 32, size=10**6, exit_code=0),
]


@pytest.mark.parametrize("how", ["summary", "collapse"])
def test_outputs_and_jobs_can_be_read_after_a_condensation(how: str) -> None:
    notes = CondensationEvent(first=3, last=6, summary="It ran.", how=how)  # type: ignore[arg-type]
    names = {tool.name for tool in offered(state_of(task(), *JOB, *LONG, notes), CodeActAgent.toolbox)}
    assert {"jobs", "read_output"} <= names
    assert not {"jobs", "read_output"} & {tool.name for tool in offered(state_of(task()), CodeActAgent.toolbox)}


def test_the_commands_of_a_child_end_with_it() -> None:
    fork = ForkAction(children=(("CodeActAgent", {"task": "a"}),))
    state = state_of(task(), fork)
    child = AgentDelegateAction(agent="CodeActAgent", inputs={"task": "a"}, source="environment", id=4, cause=3)
    job = CmdOutputObservation(command="npm start", status="background", exit_code=None, job="job-1", id=5, subtask=4)
    for event in (child, job):
        state.apply(event)
    assert state.totals.jobs == {(4, "job-1"): "npm start"}
    state.apply(ForkObservation(content="1. done", id=6, cause=3))
    assert state.totals.jobs == {}


def test_the_commands_of_a_lost_sandbox_have_ended() -> None:
    delegated = AgentDelegateAction(agent="CodeActAgent", inputs={"task": "a"})
    state = state_of(task(), *JOB, delegated, CmdRunAction(command="kill -9 $PPID", subtask=5))
    assert state.totals.jobs == {(0, "job-1"): "npm start"}
    state.apply(ErrorObservation(content="The sandbox was lost.", error_id="sandbox_lost", id=7, cause=6, subtask=5))
    assert state.totals.jobs == {}


def test_knowledge_and_the_names_of_secrets_stay_before_the_last_steps() -> None:
    told = MessageAction(content="Sign every commit.", source="environment", id=2)
    asked = MessageAction(content="Commit it.", source="user", id=1)
    steps: History = [
        (
            CmdRunAction(command=f"command {number}", id=number, completion=number),
            CmdOutputObservation(command="", exit_code=0),
        )
        for number in range(3, 60)
    ]
    for shown in (
        recent([(asked, None), (told, None), *steps], 6),
        monologue([(asked, None), (told, None), *steps], 9),
    ):
        assert [action.id for action, _ in shown[:2]] == [1, 2]
        assert len(shown) < 12
