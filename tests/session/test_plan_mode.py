"""Plan mode: the agent only reads until the user has accepted its plan."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, BrowseInteractiveAction, MessageAction
from handiwork.events.base import Action, Event
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, FileReadObservation
from handiwork.events.record import ApprovalEvent, SettingsChanged
from handiwork.session.open import create, reopen
from handiwork.session.user_events import PLAN_ACCEPTED, accepted_plan
from tests.session.bench import Bench, bash, call, calls, finish
from tests.session.test_killed import Platform

PLAN = "1. Write done.txt."
PLANNING = SettingsChanged(plan_mode=True, source="user")


def refusals(events: list[Event]) -> int:
    return sum(isinstance(event, ErrorObservation) and event.error_id == "plan_mode" for event in events)


async def test_nothing_changes_before_the_plan_is_accepted(bench: Bench) -> None:
    log = await bench.log()
    await log.append(MessageAction(content="write done.txt", source="user"), PLANNING)
    (bench.workspace / "notes.txt").write_text("read me")
    changing = [
        bash("echo x > done.txt"),
        bash("cat notes.txt > done.txt"),
        bash("python -c 'open(chr(97), chr(119))'"),
        call("ipython", code="open('done.txt', 'w')"),
        calls(("write", {"path": "done.txt", "content": "x"})),
        call("edit", path="notes.txt", old="read", new="changed"),
    ]
    reading = [bash("cat notes.txt"), call("read", path="notes.txt"), bash("ls | grep notes")]
    replies = [*changing, *reading, finish(PLAN), finish("Better: " + PLAN), bash("echo x > done.txt"), finish()]
    session = await bench.session(replies, log)

    state = await session.run()
    assert state.agent_state == "awaiting_user_input"
    assert isinstance(plan := state.history[-1][0], MessageAction)
    assert plan.content == PLAN
    assert refusals(bench.events) == len(changing)
    read = [o for _, o in state.history if isinstance(o, CmdOutputObservation | FileReadObservation)]
    assert len(read) == len(reading)
    assert [path.name for path in bench.workspace.iterdir()] == ["notes.txt"]
    assert (bench.workspace / "notes.txt").read_text() == "read me"
    assert "Plan mode is on" in str(bench.llm.requests[0])

    state = await session.run("Can it be better?")
    assert (state.agent_state, state.totals.plan_mode) == ("awaiting_user_input", True)

    await log.append(*accepted_plan(state))
    state = await session.run()
    assert state.agent_state == "finished"
    assert (bench.workspace / "done.txt").read_text() == "x\n"
    assert PLAN_ACCEPTED in str(bench.llm.requests[-2])
    assert "Plan mode is off" in str(bench.llm.requests[-2])


async def test_a_file_is_not_uploaded_in_plan_mode(bench: Bench) -> None:
    """On a button, it clicks."""

    class Uploading(Agent):
        async def step(self, state: State) -> Action:
            upload = BrowseInteractiveAction(browser_actions="upload_file('3', 'notes.txt')")
            has_tried = any(action.runnable for action, _ in state.history)
            return upload if not has_tried else AgentFinishAction(outputs={"message": PLAN})

    log = await bench.log()
    await log.append(MessageAction(content="send the notes", source="user"), PLANNING)
    state = await (await bench.session([], log, agent=Uploading)).run()
    assert state.agent_state == "awaiting_user_input"
    assert refusals(bench.events) == 1


async def test_plan_mode_that_begins_in_the_middle_refuses_an_action_that_was_allowed(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("touch a"), finish(PLAN)], log, confirmation="always")
    state = await session.run("go")
    await log.append(PLANNING)
    (action,) = state.totals.asked
    await log.append(ApprovalEvent(action=action, allowed=True, source="user"))
    state = await session.run()
    assert state.agent_state == "awaiting_user_input"
    assert list(bench.workspace.iterdir()) == []


async def test_a_delegate_of_a_planning_agent_changes_nothing_and_finishes(bench: Bench) -> None:
    log = await bench.log()
    replies = [call("delegate", task="make a file"), bash("touch a"), finish("could not"), finish(PLAN)]
    await log.append(MessageAction(content="go", source="user"), PLANNING)
    session = await bench.session(replies, log)
    state = await session.run()
    assert state.agent_state == "awaiting_user_input"
    assert refusals(bench.events) == 1
    assert list(bench.workspace.iterdir()) == []
    (finished,) = [event for event in bench.events if isinstance(event, AgentFinishAction)]
    assert finished.subtask, "only the task's own finish is a proposal"


async def test_a_new_session_begins_in_plan_mode_and_its_sandbox_stays_unchanged(bench: Bench, tmp_path: Path) -> None:
    replies = [
        calls(("bash", {"command": "touch a"}), ("bash", {"command": "ls"})),
        finish(PLAN),
        bash("echo x > a; cat a"),
        finish(),
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(reply.model_dump_json() for reply in replies))
    config = bench.config("bubblewrap", plan_mode=True).model_copy(update={"model": f"scripted:{script}"})
    message = MessageAction(content="go")
    opened = await create(bench.store, bench.store.folder, config, bench.watched.append, "a test", message)
    async with opened.hold_lease():
        state = await opened.run()
    assert (state.agent_state, state.totals.plan_mode, refusals(bench.events)) == ("awaiting_user_input", True, 1)
    assert not list(opened.files.changes())

    again = await reopen(bench.store, bench.store.folder, opened.id, bench.watched.append)
    async with again.hold_lease():
        assert (await again.run("really?")).totals.plan_mode, "a new process is still in plan mode"


def _start(platform: Platform, *arguments: str) -> list[dict[str, Any]]:
    process = platform.start(*arguments)
    out, _ = process.communicate(timeout=60)
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.slow
async def test_plan_mode_survives_kill_9(tmp_path: Path) -> None:
    platform = Platform(tmp_path, None)
    replies = [
        {"content": "slowly\nand\nslowly\n", "delay": 1, **_call("bash", command="ls")},
        _call("bash", command="echo x > planned"),
        _call("finish", message=PLAN),
        _call("bash", command="echo x > planned"),
        _call("finish", message="done"),
    ]
    platform.script.write_text("\n".join(map(json.dumps, replies)))
    process = platform.start("run", "go", "--model", f"scripted:{platform.script}", "--plan")
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "StepStarted":
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    events = _start(platform, "resume")
    assert any(event.get("error_id") == "plan_mode" for event in events)
    assert [e["content"] for e in events if e["type"] == "MessageAction" and e["wait_for_response"]] == [PLAN]


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}
