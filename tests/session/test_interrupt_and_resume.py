"""Interrupts, lost parts and crashes: the session stays whole and goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from handiwork.agents.base import Agent, InterruptedCallError
from handiwork.agents.state import State
from handiwork.errors import SandboxError
from handiwork.events.action import AgentFinishAction, ChangeAgentStateAction, CmdRunAction, MessageAction
from handiwork.events.base import Observation
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.events.record import SessionStarted, StepStarted
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Message
from handiwork.sandbox.host import HostSandbox
from handiwork.session.session import Session
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.interrupt import Interrupt
from handiwork.session.steps.live import OutputDelta, TextDelta
from handiwork.session.storage.layout import snapshots_alone
from tests.session.bench import Bench, bash, finish

PAUSE = ChangeAgentStateAction(agent_state="paused", source="user")


async def _pause_once(bench: Bench, session: Session, log_id: str, seen: type) -> State:
    running = asyncio.create_task(session.run("go"))
    await bench.until(seen)
    await (await bench.store.log(log_id)).append(PAUSE)
    return await running


async def test_an_interrupt_cancels_the_model_call_and_its_reply_is_not_lost_for_the_next(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("true", content="thinking\nhard\n", delay=30.0), finish()], log)
    running = asyncio.create_task(session.run("go"))
    await bench.until(StepStarted)
    await log.append(PAUSE)
    state = await running
    assert state.agent_state == "paused"
    assert "CompletionEvent" not in bench.kinds()


async def test_an_interrupt_before_the_first_step_of_a_run_is_not_undone_by_its_beginning(bench: Bench) -> None:
    log = await bench.log()
    await log.append(MessageAction(content="go", source="user"))
    session = await bench.session([finish()], log)
    async with session.hold_lease():
        with snapshots_alone(bench.store.folder):  # as `handiwork gc` does, for whose end a run waits
            running = asyncio.create_task(session.run())
            await asyncio.sleep(0)
            await log.append(PAUSE)
            async with asyncio.timeout(20):
                while session.state.agent_state != "paused":
                    await asyncio.sleep(0.01)
        assert (await running).agent_state == "paused"
        assert (await session.run()).agent_state == "finished"


async def test_an_interrupt_stops_the_command_and_keeps_its_output_and_the_shell(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("X=kept; echo begun; sleep 60"), bash("echo $X"), finish()], log)
    state = await _pause_once(bench, session, log.id, OutputDelta)
    output = state.history[-1][1]
    assert state.agent_state == "paused"
    assert isinstance(output, CmdOutputObservation)
    assert (output.status, output.content.splitlines()[0]) == ("interrupted", "begun")
    state = await session.run("go on")
    assert state.history[-2][1].content == "kept\n"


class Blocking(Agent):
    """Its step is a plain function; it notes whether its call was interrupted."""

    interrupted = 0

    def step(self, state: State) -> AgentFinishAction | CmdRunAction:
        try:
            self.llm.complete([Message.text("user", "hi")])
        except InterruptedCallError:
            Blocking.interrupted += 1
            return CmdRunAction(command="echo too late")
        return AgentFinishAction()


@pytest.mark.slow
async def test_an_interrupt_reaches_a_blocking_step_and_what_it_returns_then_is_dropped(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([Reply(content="a\nb\nc\n", delay=3.0), "x"], log, Blocking)
    state = await _pause_once(bench, session, log.id, TextDelta)
    assert state.agent_state == "paused"
    assert (await session.run("again")).agent_state == "finished"
    assert Blocking.interrupted == 1
    assert not any(isinstance(action, CmdRunAction) for action, _ in state.history)


async def test_a_lost_sandbox_is_started_again_and_the_agent_is_told(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("kill -9 $PPID"), bash("echo back"), finish()], log)
    state = await session.run("go")
    (_, lost), (_, back) = state.history[1:3]
    assert isinstance(lost, ErrorObservation)
    assert lost.error_id == "sandbox_lost"
    assert (back.content, state.agent_state) == ("back\n", "finished")


async def test_a_lost_sandbox_comes_back_with_the_environment_of_the_project(bench: Bench) -> None:
    executor = Executor(HostSandbox(bench.workspace, bench.store.blobs.put), Interrupt())
    commands = [
        CmdRunAction(command="export COLOUR='dark red'", source="environment"),
        CmdRunAction(command="export COLOUR=green OWN=1; kill -9 $PPID"),
        CmdRunAction(command="echo $COLOUR $OWN"),
    ]
    try:
        _, lost, shown = [await executor.execute(command, None, lambda _: None) for command in commands]
    finally:
        await executor.close()
    assert isinstance(lost, ErrorObservation)
    assert (lost.error_id, shown.content) == ("sandbox_lost", "dark red\n")


async def test_a_sandbox_that_could_not_start_again_has_the_environment_once_it_does(bench: Bench) -> None:
    sandbox = Unstartable(bench.workspace, bench.store.blobs.put)
    sandbox.broken = False
    executor = Executor(sandbox, Interrupt())

    async def run(command: str) -> Observation:
        return await executor.execute(CmdRunAction(command=command, source="environment"), None, lambda _: None)

    try:
        await run("export COLOUR='dark red'")
        sandbox.broken = True
        with pytest.raises(SandboxError):
            await run("kill -9 $PPID")
        sandbox.broken = False
        assert (await run("echo $COLOUR")).content == "dark red\n"
    finally:
        await executor.close()


async def test_a_failing_model_stops_the_session_which_can_be_resumed(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("echo 1"), Reply(error="the model is away"), finish()], log)
    state = await session.run("go")
    assert (state.agent_state, state.change.reason, state.last_error) == ("error", "model", "the model is away")
    assert (await session.run()).agent_state == "finished"


async def test_an_action_without_an_observation_is_answered_when_the_session_goes_on(bench: Bench) -> None:
    log = await bench.log()
    first = await bench.session([bash("echo begun; sleep 60"), finish()], log)
    running = asyncio.create_task(first.run("go"))
    await bench.until(OutputDelta)
    running.cancel()
    await asyncio.wait([running])
    await first.close()
    state = await (await bench.session([bash("echo begun; sleep 60"), finish()], log)).run()
    _, crashed = state.history[1]
    assert isinstance(crashed, ErrorObservation)
    assert (crashed.error_id, state.agent_state) == ("crashed", "finished")


async def test_time_between_a_crash_and_the_resume_is_not_counted(bench: Bench) -> None:
    log = await bench.log()
    async with log.lease():
        old = SessionStarted(agent="CodeActAgent", model="m", sandbox="none")
        await log.append(old.with_fields(timestamp=old.timestamp.replace(year=2020)))
        change = ChangeAgentStateAction(agent_state="running", source="user")
        await log.append(change.with_fields(timestamp=old.timestamp.replace(year=2020)))
        await log.append(MessageAction(content="go on", source="user"))
    state = await (await bench.session([finish()], log)).run("go")
    assert state.time < 60


async def test_closing_ends_the_shell_and_its_children(bench: Bench, tmp_path: Path) -> None:
    session = await bench.session([bash("sleep 1000 & echo $! > pid"), finish()])
    await session.run("go")
    pid = int((bench.workspace / "pid").read_text())
    os.kill(pid, 0)
    await session.close()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    alive = Path(f"/proc/{pid}").exists()
    if alive:
        os.kill(pid, signal.SIGKILL)
    assert not alive


class Unstartable(HostSandbox):
    """A sandbox that cannot be started until it is mended."""

    broken = True

    async def start(self) -> None:
        if self.broken:
            raise SandboxError("no room for a sandbox")
        await super().start()


async def test_a_sandbox_that_cannot_start_stops_the_session_with_every_action_answered(bench: Bench) -> None:
    log = await bench.log()
    sandbox = Unstartable(bench.workspace, bench.store.blobs.put)
    session = await bench.session([bash("echo 1"), bash("echo 2"), finish()], log, sandbox=sandbox)
    state = await session.run("go")
    assert (state.agent_state, state.change.reason, state.last_error) == ("error", "sandbox", "no room for a sandbox")
    assert state.pending == []
    sandbox.broken = False
    assert (await session.run()).agent_state == "finished"


class Slow(HostSandbox):
    """A sandbox that takes its time to start."""

    async def start(self) -> None:
        await asyncio.sleep(30)


async def test_an_interrupt_does_not_wait_for_the_sandbox(bench: Bench) -> None:
    log = await bench.log()
    sandbox = Slow(bench.workspace, bench.store.blobs.put)
    session = await bench.session([bash("echo 1"), finish()], log, sandbox=sandbox)
    async with asyncio.timeout(15):
        state = await _pause_once(bench, session, log.id, CmdRunAction)
    assert (state.agent_state, state.history[1][1].error_id) == ("paused", "interrupted")
