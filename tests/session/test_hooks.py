"""Hooks run at their points, in the sandbox or on the user's machine; what they say counts, and all is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest

from handiwork.events.action import AgentFinishAction, ChangeAgentStateAction, CmdRunAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import (
    CmdOutputObservation,
    FileWriteObservation,
    ForkObservation,
    HookRejectObservation,
)
from handiwork.events.record import UnusedHooks
from handiwork.hooks import Hook
from handiwork.llm.scripted.script import Reply
from handiwork.session.hooks.command import OUTPUT_LIMIT, run_hook
from handiwork.session.open import reopen
from handiwork.session.steps.interrupt import Interrupt
from handiwork.session.user_events import actions_to_approve, approval
from tests.session.bench import bash, call, calls, finish
from tests.session.hook_bench import HookBench, hook_bench
from tests.without_home import run_without_home

pytestmark = pytest.mark.slow

E = TypeVar("E", bound=Event)


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HookBench]:
    async with hook_bench(tmp_path, monkeypatch) as one:
        yield one


def of(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


async def test_hooks_run_around_the_actions_that_they_match_and_the_agent_sees_what_they_say(bench: HookBench) -> None:
    bench.set(
        {"event": "session_start", "name": "begin", "command": "cat > /tmp/begin; pwd"},
        {"event": "before_action", "name": "keep", "matcher": "bash(*rm *)", "command": "echo 'keep it'; exit 3"},
        {
            "event": "after_action",
            "name": "lint",
            "matcher": "write(*.py)",
            "command": "cat > /tmp/after; echo 1 fault",
        },
        {"event": "after_action", "name": "silent", "matcher": "CmdRunAction|FileWriteAction", "command": "true"},
        {"event": "before_action", "name": "other", "matcher": "Cmd|CmdRun|CmdRunActions", "command": "exit 1"},
        {
            "event": "session_end",
            "name": "end",
            "command": "python3 -c 'import json; print(json.load(open(0))[\"state\"])'",
        },
    )
    state = await bench.run(
        bash("cd /tmp && rm readme"),
        bash("cat begin /tmp/begin; cd /tmp; pwd"),
        calls(("write", {"path": "/tmp/a.py", "content": "x = 1\n"})),
        bash("cat /tmp/after"),
        finish(),
    )
    assert state.agent_state == "finished"
    begin, keep, _, lint, _, _, end = bench.hooks
    assert (begin.point, begin.exit_code, begin.output) == ("session_start", 0, state.workspace)
    assert (keep.effect, keep.exit_code, keep.output) == ("refused", 3, "keep it")
    assert (end.point, end.output, end.cause) == ("session_end", "finished", None)
    (refusal,) = of(bench.events, HookRejectObservation)
    assert "hook 'keep' refused this action (exit code 3)" in refusal.content
    assert (keep.cause, lint.cause) == (refusal.cause, of(bench.events, FileWriteObservation)[0].cause)
    begun, after = (event.content for event in of(bench.events, CmdOutputObservation))
    payload = json.loads(begun.splitlines()[-2])
    assert payload["event"] == "session_start"
    assert payload["workspace"] == state.workspace
    payload = json.loads(after)
    assert payload["action"]["path"] == "/tmp/a.py"
    assert payload["observation"]["type"] == "FileWriteObservation"
    assert "a.py is created.\n[hook lint: exit code 0]\n1 fault" in bench.seen()
    assert "keep it" in bench.seen()
    assert "silent" not in bench.seen()
    (unused,) = of(bench.events, UnusedHooks)
    assert (unused.hooks, unused.id) == (("other (before_action)",), bench.events[-1].id)


async def test_a_gate_sends_the_agent_back_until_it_opens(bench: HookBench) -> None:
    bench.set({"event": "before_finish", "name": "tests", "command": "test -e done || { echo 'no done'; exit 1; }"})
    async with bench.session(finish("ready"), bash("echo yes > done"), finish("ready now")) as session:
        state = await session.run("do it")
        assert [hook.effect for hook in bench.hooks] == ["sent_back", ""]
        assert len(of(bench.events, AgentFinishAction)) == 1
        assert state.outputs == {"message": "ready now"}
        assert "hook 'tests' does not let you finish yet (exit code 1).\nno done" in bench.seen()
        outcomes = [message for message in bench.llm.requests[1] if message.role == "tool"]
        assert [message.tool_call_id for message in outcomes] == ["call_0_0"]


async def test_a_message_that_comes_while_a_gate_runs_is_read_before_the_end(bench: HookBench) -> None:
    bench.set(
        {
            "event": "before_finish",
            "name": "slow",
            "command": f"touch {bench.folder}/begun; sleep 0.5",
            "where": "host",
        },
    )
    async with bench.session(finish("one"), finish("two"), sandbox="none") as session, session.hold_lease():
        running = asyncio.create_task(session.run("do it"))
        async with asyncio.timeout(20):
            while not (bench.folder / "begun").exists():
                await asyncio.sleep(0.05)
            await session.log.append(MessageAction(content="one more thing", source="user"))
            state = await running
    assert state.outputs == {"message": "two"}
    assert "one more thing" in bench.seen()


async def test_a_gate_that_never_opens_gives_way_and_says_so(bench: HookBench) -> None:
    bench.set({"event": "before_finish", "name": "tests", "command": "exit 1", "max_refusals": 2})
    state = await bench.run(finish("a"), finish("b"), finish("c"))
    assert state.agent_state == "finished"
    assert [hook.effect for hook in bench.hooks] == ["sent_back", "sent_back", "let_through"]
    assert state.totals.hooks.sent_back == {}


async def test_a_hook_that_takes_too_long_or_cannot_run_refuses_and_both_are_said(bench: HookBench) -> None:
    slow = "trap '' TERM; echo begun; sleep 60 & wait; sleep 60"
    bench.set(
        {"event": "before_action", "name": "slow", "matcher": "bash(echo 1)", "command": slow, "timeout": 0.2},
        {"event": "before_action", "name": "nobody", "matcher": "bash(echo 2)", "command": "no-such-program"},
        {"event": "after_action", "name": "wordy", "matcher": "bash(echo 3)", "command": "seq 100000; sleep 30 &"},
    )
    await bench.run(*(bash(f"echo {number}") for number in range(1, 4)), finish())
    slow_hook, nobody, wordy = bench.hooks
    assert (slow_hook.problem, slow_hook.effect, slow_hook.output) == ("timeout", "refused", "begun")
    assert (nobody.exit_code, nobody.effect) == (127, "refused")
    assert len(of(bench.events, HookRejectObservation)) == 2
    assert wordy.output.startswith("1\n2\n")
    assert wordy.output.endswith("\n100000")
    assert len(wordy.output) < OUTPUT_LIMIT + 100


async def test_a_hook_without_a_home_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    hook = Hook(event="session_start", command="true", where="host")
    result = await run_hook(hook, "", None, Interrupt())
    assert (result.problem, result.exit_code) == ("not_started", None)
    assert "No such file" in result.output


async def test_a_hook_on_the_users_machine_runs_at_home_and_is_ended_by_its_timeout(bench: HookBench) -> None:
    bench.set(
        {"event": "session_start", "command": "pwd; echo $MINE", "where": "host"},
        {
            "event": "session_end",
            "command": "cat; (trap '' TERM; sleep 60) & sleep 60",
            "where": "host",
            "timeout": 0.3,
        },
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINE", "variable")
        await bench.run(finish(), sandbox="none")
    start, end = bench.hooks
    assert start.output == f"{bench.folder}\nvariable"
    assert (end.problem, json.loads(end.output)["workspace"]) == ("timeout", str(bench.project))


async def test_an_interrupt_ends_a_hook_and_the_action_waits_for_nothing(bench: HookBench) -> None:
    bench.set({"event": "before_action", "name": "slow", "command": "echo begun; sleep 60"})
    async with bench.session(bash("echo 1"), finish()) as session, session.hold_lease():
        running = asyncio.create_task(session.run("do it"))
        async with asyncio.timeout(20):
            while not of(bench.events, CmdRunAction):
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
            state = await running
        assert (state.agent_state, bench.hooks[0].problem) == ("paused", "interrupted")
        assert "Not executed" in (state.history[-1][1].content if state.history[-1][1] else "")
        assert session.state.totals.hooks.done == set()


async def test_an_interrupt_at_the_end_ends_the_hook_and_not_the_outcome(bench: HookBench) -> None:
    bench.set(
        {"event": "session_end", "name": "slow", "command": f"touch {bench.folder}/begun; sleep 60", "where": "host"},
        {"event": "session_end", "name": "later", "command": "true"},
        {"event": "before_finish", "name": "format", "command": "echo formatted > readme"},
    )
    async with bench.session(finish()) as session, session.hold_lease():
        running = asyncio.create_task(session.run("do it"))
        async with asyncio.timeout(20):
            while not (bench.folder / "begun").exists():
                await asyncio.sleep(0.05)
            await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
            state = await running
        assert state.agent_state == "finished"
        assert [(hook.hook, hook.problem) for hook in bench.hooks] == [("format", ""), ("slow", "interrupted")]
        (unused,) = of(bench.events, UnusedHooks)
        assert unused.hooks == ("later (session_end)",)
        kinds = [event.kind for event in bench.events]
        assert kinds.index("SnapshotEvent") == kinds.index("HookEvent") - 1 < kinds.index("AgentFinishAction")


async def test_a_question_to_the_user_comes_after_the_hooks_which_then_do_not_run_again(bench: HookBench) -> None:
    bench.set(
        {"event": "before_action", "name": "no", "matcher": "bash(*no*)", "command": "exit 1"},
        {"event": "before_action", "name": "count", "matcher": "bash", "command": "true"},
        {"event": "session_start", "name": "once", "command": "true"},
        {"event": "before_finish", "name": "gate", "command": "true"},
    )
    replies = [calls(("bash", {"command": "echo no"}), ("bash", {"command": "touch yes"})), finish()]
    async with bench.session(*replies, confirmation="always") as session:
        state = await session.run("do it")
        assert state.agent_state == "awaiting_user_confirmation"
        assert [hook.hook for hook in bench.hooks] == ["once", "no", "count"]
        await session.log.append(*(approval(action, allowed=True) for action in actions_to_approve(state)))
    # Another process resumes: what the log knows does not run again.
    again = await reopen(bench.store, bench.data, session.id, bench.watch, model=_script(bench, *replies))
    try:
        state = await again.run()
    finally:
        await again.close()
    assert state.agent_state == "finished", state.last_error
    assert [hook.hook for hook in bench.hooks if hook.id > session.state.last_id] == ["gate"]


async def test_delegates_and_children_inherit_the_hooks_and_only_a_named_agent_is_gated(bench: HookBench) -> None:
    bench.set(
        {"event": "before_action", "name": "first", "matcher": "bash", "command": "echo hook >> hooked"},
        {"event": "after_action", "name": "fork", "matcher": "fork|delegate", "command": "echo done"},
        {"event": "before_finish", "name": "mine", "command": "true"},
        {"event": "before_finish", "name": "all", "matcher": "CodeActAgent|Other", "command": "true"},
    )
    child = [bash("cat hooked"), finish("child")]
    state = await bench.run(
        call("fork", tasks=["a task"]), *child, call("delegate", agent="CodeActAgent", task="b"), *child, finish("own")
    )
    assert state.agent_state == "finished"
    outcome = of(bench.events, ForkObservation)[0]
    assert "+hook" in outcome.outcomes[0].diff
    assert not (bench.project / "hooked").exists()
    ran = [(hook.hook, hook.subtask != 0) for hook in bench.hooks]
    inside = [("first", True), ("all", True), ("fork", False)]
    assert ran == [*inside, *inside, ("mine", False), ("all", False)]
    assert "[hook fork: exit code 0]\ndone" in bench.seen()


async def test_the_end_is_told_again_after_more_work_and_not_otherwise(bench: HookBench) -> None:
    bench.set(
        {"event": "session_end", "name": "end", "command": "true", "where": "host"},
        {"event": "before_action", "name": "never", "matcher": "fork", "command": "true"},
    )
    async with bench.session(finish(), finish(), sandbox="none") as session:
        await session.run("do it")
        await session.run()
        assert [event.kind for event in bench.events[-2:]] == ["HookEvent", "UnusedHooks"]
        assert len(bench.hooks) == 1
        await session.run("more")
        assert len(bench.hooks) == 2


async def test_hooks_neither_get_nor_show_secrets(bench: HookBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    bench.set(
        {
            "event": "after_action",
            "matcher": "bash",
            "command": 'cat > "$HOME/given"; echo "$MY_TOKEN"',
            "where": "host",
        },
        {"event": "before_finish", "command": 'echo "token: $MY_TOKEN"'},
        {"event": "session_end", "command": "printf 'x%.0s' $(seq 3990); echo $MY_TOKEN$(seq 9000)", "where": "host"},
    )
    await bench.run(bash('echo "$MY_TOKEN"'), finish(), secrets=("MY_TOKEN",))
    assert "correct-horse" not in (bench.folder / "given").read_text()
    *_, cut = bench.hooks
    assert [hook.output for hook in bench.hooks[:2]] == ["[secret MY_TOKEN]", "token: "]
    assert "xxx[secret MY" in cut.output
    assert "correct" not in cut.output
    assert "correct-horse" not in bench.seen()


async def test_without_hooks_the_events_are_the_same(bench: HookBench) -> None:
    state = await bench.run(bash("echo 1"), finish())
    assert state.agent_state == "finished"
    kinds = [event.kind for event in bench.events if event.kind != "SnapshotEvent"]
    step = ["StepStarted", "CompletionEvent"]
    assert kinds == [
        *("SessionStarted", "MessageAction", *step, "CmdRunAction", "CmdOutputObservation"),
        *(*step, "AgentFinishAction"),
    ]
    assert "hooks" not in bench.events[0].model_dump()["settings"]


def _script(bench: HookBench, *replies: Reply) -> str:
    file = bench.folder / "script.jsonl"
    file.write_text("".join(f"{reply.model_dump_json()}\n" for reply in replies))
    return f"scripted:{file}"


def test_a_hook_on_the_machine_of_a_user_without_a_home_runs_at_the_top(tmp_path: Path) -> None:
    script = """
import asyncio
from handiwork.hooks import Hook
from handiwork.session.hooks.command import run_hook
from handiwork.session.steps.interrupt import Interrupt

hook = Hook.model_validate({"event": "before_finish", "command": "pwd", "where": "host"})
print(asyncio.run(run_hook(hook, "", None, Interrupt())).output)
"""
    assert run_without_home(script, tmp_path) == "/\n"
