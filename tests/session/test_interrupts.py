"""An interrupt takes effect whatever the session is doing. How soon, perf/interrupts.py measures."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pytest

from handiwork.agents.base import Agent, InterruptedCallError, Step
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    ChangeAgentStateAction,
    CmdRunAction,
    ForkAction,
)
from handiwork.events.record import StepStarted
from perf import interrupts
from perf.interrupts import SITUATIONS, interrupted
from tests.session.bench import Bench

STUCK = ["a blocking step that sleeps", "a blocking step in an endless loop"]
QUICK = [
    "streaming the model's reply",
    "running a command that ignores SIGINT and SIGTERM",
    "a blocking step that waits for the model",
    "a delegate that runs a command",
    "two children that wait for the model",
    "a blocking step in an endless loop",
]
"""What stands for the others among the fast tests."""


def situations(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in names]


async def check_it_stops(situation: str, sandbox: Literal["none", "bubblewrap"], folder: Path) -> None:
    async with asyncio.timeout(20):
        state, _ = await interrupted(situation, sandbox, folder)
    assert state.agent_state == "paused"
    left = [action for part in state.tree() for action in part.pending]
    assert all(isinstance(action, AgentDelegateAction | ForkAction) for action in left), "subtasks go on later"


@pytest.mark.parametrize("situation", situations(name for name in SITUATIONS if name not in STUCK))
async def test_a_session_stops_and_every_action_is_answered(situation: str, tmp_path: Path) -> None:
    await check_it_stops(situation, "none", tmp_path)


@pytest.mark.slow
async def test_children_in_sandboxes_of_their_own_stop_too(tmp_path: Path) -> None:
    await check_it_stops("two children whose commands ignore signals", "bubblewrap", tmp_path)


@pytest.mark.parametrize("situation", situations(STUCK))
def test_a_step_that_does_not_come_back_delays_neither_the_pause_nor_the_end_of_the_process(situation: str) -> None:
    program = [sys.executable, interrupts.__file__, "--sandbox", "none", "--only", situation]
    done = subprocess.run(program, timeout=30, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Late(Agent):
    """Its first step comes back, and asks the model, only when the session is over."""

    release, refused = threading.Event(), threading.Event()

    def step(self, state: State) -> Step:
        if state.local_iteration > 1:
            return AgentFinishAction()
        Late.release.wait(30)
        try:
            self.llm.complete([])
        except InterruptedCallError:
            Late.refused.set()
        return CmdRunAction(command="echo too late")


async def test_a_step_that_comes_back_too_late_can_neither_ask_the_model_nor_act(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session(["reply"], log, Late)
    running = asyncio.create_task(session.run("go"))
    await bench.until(StepStarted)
    await log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
    assert (await running).agent_state == "paused"
    assert (await session.run("again")).agent_state == "finished"
    Late.release.set()
    assert await asyncio.to_thread(Late.refused.wait, 10)
    assert bench.llm.requests == []
    assert "CmdRunAction" not in bench.kinds()
