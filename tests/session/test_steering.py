"""What the user decides while a session runs: approvals, another model, a way out of a loop, the plan in sight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handiwork.events.action import ChangeAgentStateAction, CmdRunAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation, UserRejectObservation
from handiwork.events.record import (
    ApprovalEvent,
    CondensationEvent,
    Limits,
    LoopEvent,
    PermissionsRevoked,
    SettingsChanged,
)
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.paths import data_dir
from handiwork.session.approval.project import Permissions, ProjectPermissions
from handiwork.session.approval.rules import rule_for
from handiwork.session.config import SessionConfig, config_of
from handiwork.session.open import reopen
from handiwork.session.user_events import interrupting
from handiwork.settings import load
from tests.session.bench import Bench, bash, call, calls, finish
from tests.snapshots.workbench import Workbench

pytestmark = pytest.mark.slow


def approval(action: int, allowed: bool = True, comment: str = "", rule: str | None = None) -> Event:
    return ApprovalEvent(action=action, allowed=allowed, comment=comment, rule=rule, source="user")


async def test_nothing_runs_before_it_is_allowed(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("echo hello > f"), finish()], log, confirmation="always")
    state = await session.run("go")
    assert state.agent_state == "awaiting_user_confirmation"
    assert not (bench.workspace / "f").exists()
    await log.append(approval(state.totals.asked[0]))
    state = await session.run()
    assert state.agent_state == "finished"
    assert (bench.workspace / "f").read_text() == "hello\n"


async def test_a_denied_action_is_told_with_the_reason_and_the_others_are_asked_about(bench: Bench) -> None:
    log = await bench.log()
    both = calls(("bash", {"command": "touch a"}), ("bash", {"command": "touch b"}))
    session = await bench.session([both, finish()], log, confirmation="always")
    state = await session.run("go")
    await log.append(approval(state.totals.asked[0], allowed=False, comment="not that one"))
    state = await session.run()
    await log.append(approval(state.totals.asked[0]))
    state = await session.run()
    assert isinstance(denied := state.history[1][1], UserRejectObservation)
    assert denied.content == "not that one"
    assert sorted(path.name for path in bench.workspace.iterdir()) == ["b"]
    answers = [m.content[0].text for m in bench.llm.requests[-1] if m.role == "tool"]
    assert answers[0] == "Not done: the user refused it, and says: not that one"


async def test_a_message_instead_of_an_answer_denies(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("touch a"), finish()], log, confirmation="always")
    await session.run("go")
    state = await session.run("do something else")
    assert isinstance(state.history[1][1], UserRejectObservation)
    assert state.agent_state == "finished"
    assert list(bench.workspace.iterdir()) == []


async def test_a_question_that_a_pause_left_open_is_asked_again(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("touch a"), finish()], log, confirmation="always")
    await session.run("go")
    await log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
    state = await session.run()
    assert (state.agent_state, state.last_error) == ("awaiting_user_confirmation", "")
    await log.append(approval(state.totals.asked[0]))
    assert (await session.run()).agent_state == "finished"
    assert [path.name for path in bench.workspace.iterdir()] == ["a"]


async def test_a_rule_learnt_from_an_answer_holds_for_the_session(bench: Bench) -> None:
    log = await bench.log()
    replies = [bash("git add a"), bash("git add b c"), finish()]
    session = await bench.session(replies, log, confirmation="always")
    state = await session.run("go")
    rule = rule_for(state.pending[0])
    await log.append(approval(state.totals.asked[0], rule=rule))
    state = await session.run()
    assert (state.agent_state, state.totals.rules) == ("finished", [rule])


async def test_an_allowed_action_is_carried_out_in_another_process_but_never_twice(bench: Bench) -> None:
    log = await bench.log()
    replies = [bash("echo once >> f"), finish()]
    state = await (await bench.session(replies, log, confirmation="always")).run("go")
    await log.append(approval(state.totals.asked[0]))
    state = await (await bench.session(replies, log, confirmation="always")).run()
    assert state.agent_state == "finished"
    assert (bench.workspace / "f").read_text() == "once\n"


@pytest.mark.parametrize("before", [(), (bash("true"),)])
async def test_a_message_that_comes_while_the_model_ends_the_task_is_read(
    bench: Bench, before: tuple[Reply, ...]
) -> None:
    slow = call("finish", "I am done with this.", message="one").model_copy(update={"delay": 0.5})
    async with (session := await bench.session([*before, slow, finish("two")])).hold_lease():
        running = asyncio.create_task(session.run("go"))
        async with asyncio.timeout(20):
            while len(bench.llm.requests) <= len(before):
                await asyncio.sleep(0.01)
        await session.log.append(MessageAction(content="one more thing", source="user"))
        state = await running
    assert state.outputs == {"message": "two"}
    assert "one more thing" in str(bench.llm.requests[-1])


async def test_the_model_changes_in_the_middle_of_a_session(bench: Bench) -> None:
    log = await bench.log()
    bench.models["other"] = ScriptedLLM(["unused", finish("by the other")], name="other")
    session = await bench.session([bash("true")], log, iterations=1)
    await session.run("go")
    await log.append(SettingsChanged(model="other", limits=Limits(), source="user"))
    state = await session.run()
    assert (state.agent_state, state.model, state.outputs) == ("finished", "other", {"message": "by the other"})


async def test_the_server_of_the_same_model_changes_in_the_middle_of_a_session(bench: Bench) -> None:
    log = await bench.log()
    other = bench.models["scripted"] = ScriptedLLM(["unused", finish("by the other")])
    session = await bench.session([bash("true")], log, iterations=1)
    await session.run("go")
    base_url = "http://127.0.0.1:9/v1"
    await log.append(SettingsChanged(model=bench.llm.name, base_url=base_url, limits=Limits(), source="user"))
    state = await session.run()
    assert (state.agent_state, state.outputs, len(other.requests)) == ("finished", {"message": "by the other"}, 1)


async def test_an_agent_that_repeats_itself_is_told_then_the_user_is_asked(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("cat nothing") for _ in range(20)], log)
    state = await session.run("go")
    assert state.change is not None
    assert (state.agent_state, state.change.reason) == ("paused", "stuck")
    assert state.iteration == 6, "four repetitions, and two more after it was told"
    told = [event for event in bench.events if isinstance(event, LoopEvent)]
    assert len(told) == 1
    assert "cat nothing" in told[0].content
    assert told[0].content in str(bench.llm.requests[-1])


async def test_going_back_to_before_the_loop(bench: Bench) -> None:
    log = await bench.log()
    replies = [bash("echo first"), *[bash("cat nothing") for _ in range(6)], finish()]
    session = await bench.session(replies, log)
    state = await session.run("go")
    assert state.loop is not None
    rewind = CondensationEvent(
        first=state.loop.first, last=state.last_id, how="rewind", summary="It was a loop.", source="user"
    )
    await log.append(rewind, ChangeAgentStateAction(agent_state="running", source="user"))
    state = await session.run()
    assert state.agent_state == "finished"
    ran = [o.content for _, o in state.history if isinstance(o, CmdOutputObservation)]
    assert ran == ["first\n"]
    assert "It was a loop." in str(bench.llm.requests[-1])
    assert sum(isinstance(event, CmdRunAction) for event in bench.events) == 7, "the log keeps them"


async def test_a_command_that_shows_something_new_each_time_is_no_loop(bench: Bench) -> None:
    """INVENTORY F7: a log that is polled changes."""
    state = await (await bench.session([*[bash("echo x >> log; cat log")] * 8, finish()])).run("go")
    assert state.agent_state == "finished"


async def test_the_plan_is_kept_and_shown(bench: Bench) -> None:
    replies = [
        call("plan_task", goal="mend it", subtasks=["reproduce", "repair"]),
        call("modify_task", task_id="0.0", state="completed"),
        call("modify_task", task_id="9", state="completed"),
        finish(),
    ]
    state = await (await bench.session(replies)).run("go")
    texts = [observation.content for _, observation in state.history if observation is not None]
    assert texts[1] == state.plan.text()
    assert "reproduce" in texts[1]
    assert "9" in texts[2]


async def test_the_confirmation_mode_and_the_limits_change_while_a_command_runs(bench: Bench) -> None:
    log = await bench.log()
    replies = [bash("until [ -e go ]; do sleep 0.05; done"), bash("touch a"), finish()]
    session = await bench.session(replies, log)
    running = asyncio.create_task(session.run("go"))
    await bench.until(CmdRunAction)
    await log.append(SettingsChanged(confirmation="always", limits=Limits(iterations=2), source="user"))
    (bench.workspace / "go").touch()
    state = await running
    assert state.agent_state == "awaiting_user_confirmation"
    await log.append(SettingsChanged(confirmation="never", source="user"), approval(state.totals.asked[0]))
    state = await session.run()
    assert state.change is not None
    assert (state.agent_state, state.change.reason, state.iteration) == ("paused", "limit", 2)


async def test_a_message_may_interrupt_and_the_actions_that_had_not_begun_never_run(bench: Bench) -> None:
    log = await bench.log()
    both = calls(("bash", {"command": "touch began; sleep 1000"}), ("bash", {"command": "touch never"}))
    session = await bench.session([both, bash("touch other"), finish()], log)
    running = asyncio.create_task(session.run("go"))
    async with asyncio.timeout(20):
        while not (bench.workspace / "began").exists():
            await asyncio.sleep(0.01)
    await log.append(*interrupting(MessageAction(content="do the other", source="user")))
    state = await running
    assert state.agent_state == "finished"
    assert sorted(path.name for path in bench.workspace.iterdir()) == ["began", "other"]
    assert "do the other" in str(bench.llm.requests[1])


async def test_a_message_waits_for_the_end_of_the_current_actions(bench: Bench) -> None:
    log = await bench.log()
    both = calls(("bash", {"command": "until [ -e go ]; do sleep 0.05; done"}), ("bash", {"command": "touch second"}))
    session = await bench.session([both, finish()], log)
    running = asyncio.create_task(session.run("go"))
    await bench.until(CmdRunAction)
    await log.append(MessageAction(content="one more thing", source="user"))
    (bench.workspace / "go").touch()
    assert (await running).agent_state == "finished"
    assert (bench.workspace / "second").exists()
    assert "one more thing" in str(bench.llm.requests[1])


async def test_a_rule_that_is_taken_back_asks_again(bench: Bench) -> None:
    log = await bench.log()
    replies = [bash("git add a"), bash("git add b"), finish()]
    session = await bench.session(replies, log, confirmation="always")
    state = await session.run("go")
    rule = rule_for(state.pending[0])
    await log.append(approval(state.totals.asked[0], rule=rule), PermissionsRevoked(rules=(rule,), source="user"))
    state = await session.run()
    assert (state.agent_state, state.totals.rules) == ("awaiting_user_confirmation", [])


async def test_settings_changed_while_a_session_was_only_open_hold_in_its_next_run(
    bench: Bench, tmp_path: Path, new_user: None
) -> None:
    log = await Workbench(tmp_path, bench.store).ran("true", sandbox="none", allow_net=("example.org",))
    opened = await reopen(bench.store, tmp_path / "data", log.id, lambda _: None)
    async with opened.hold_lease():  # as for a terminal
        change = SettingsChanged(model="scripted:other", limits=Limits(iterations=7), source="user")
        await log.append(change, PermissionsRevoked(hosts=("example.org",), source="user"))
        state = await opened.run("once more")
    assert (state.model, state.limits.iterations, state.totals.network) == ("scripted:other", 7, [])
    assert (await config_of(log)).model == "scripted:other"


async def test_rules_and_hosts_that_are_kept_hold_in_new_sessions_on_the_project_alone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    kept = ProjectPermissions(data_dir(), str(bench.workspace))
    kept.keep(Permissions(rules=("command touch *",), hosts=("example.org",)))
    kept.keep(Permissions(rules=("command mkdir *",)))
    config = SessionConfig.of(load({"confirmation": "always", "sandbox": "none"}), bench.workspace)
    assert config.allow_net == ("example.org",)
    other = SessionConfig.of(load({}), tmp_path)
    assert (other.rules, other.allow_net) == ((), ())

    log = await bench.log()
    async with log.lease():
        await log.append(config.started("CodeActAgent", "scripted", str(bench.workspace)))
    session = await bench.session([bash("touch a"), bash("echo b > b"), finish()], log, confirmation="always")
    state = await session.run("go")
    assert state.agent_state == "awaiting_user_confirmation"
    assert [path.name for path in bench.workspace.iterdir()] == ["a"]

    kept.take_back(Permissions(rules=("command touch *", "command mkdir *"), hosts=("example.org",)))
    assert kept.read() == Permissions()


async def test_a_limit_is_raised_while_the_session_is_open(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("true", cost=1.0), bash("ls", cost=1.0), finish()], log, cost=1.5)
    assert (await session.run("go")).cost == 1.0
    await log.append(SettingsChanged(limits=Limits(cost=3.0), source="user"))
    assert (await session.run()).agent_state == "finished"
