"""A hook before the finish sends every kind of agent back to work; an interrupt of it leaves a whole session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.agents.swarm.graph import build, save
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentThinkAction,
    BrowseInteractiveAction,
    ChangeAgentStateAction,
    CmdRunAction,
)
from handiwork.llm.types import Capabilities
from tests.session.bench import call, finish
from tests.session.hook_bench import HookBench, hook_bench

pytestmark = pytest.mark.slow

SEES = Capabilities(vision=True)


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HookBench]:
    async with hook_bench(tmp_path, monkeypatch) as one:
        yield one


def gate(bench: HookBench, refusal: str = "echo 'no tests'; exit 1") -> None:
    """Write a hook that refuses the first finish."""
    once = f"test -e {bench.folder}/asked || {{ touch {bench.folder}/asked; {refusal}; }}"
    bench.set({"event": "before_finish", "name": "gate", "command": once, "where": "host"})


def effects(bench: HookBench) -> list[str]:
    return [hook.effect for hook in bench.hooks]


def swarm(bench: HookBench) -> str:
    save(build(["io"], "references"), bench.folder / "swarm.json")
    return str(bench.folder / "swarm.json")


async def test_swe_agent_works_on_and_submits_again(bench: HookBench) -> None:
    gate(bench)
    replies = [call("submit"), call("bash", command="echo tested > tests"), call("submit")]
    state = await bench.run(*replies, agent="SWEAgent", sandbox="none")
    assert effects(bench) == ["sent_back", ""]
    commands = [event.command for event in bench.events if isinstance(event, CmdRunAction) and event.completion]
    assert [command for command in commands if not command.startswith("_")] == [
        "submit",
        "echo tested > tests",
        "submit",
    ]
    assert (state.agent_state, state.outputs["exit_status"]) == ("finished", "submitted")
    assert "+tested" in str(state.outputs["patch"])
    assert "no tests" in bench.seen()


async def test_delegator_agent_has_the_coder_answer_the_hook(bench: HookBench) -> None:
    gate(bench)
    study, verified = call("finish", summary="It is short."), call("finish", completed=True, summary="It works.")
    work = [study, finish("mended"), verified, finish("tested"), verified]
    state = await bench.run(*work, agent="DelegatorAgent", sandbox="none")
    assert effects(bench) == ["sent_back", ""]
    delegated = [event for event in bench.events if isinstance(event, AgentDelegateAction)]
    assert [event.agent for event in delegated[2:]] == ["VerifierAgent", "CoderAgent", "VerifierAgent"]
    assert "hook 'gate' does not let you finish yet (exit code 1).\nno tests" in str(delegated[3].inputs["objections"])
    assert (state.agent_state, state.outputs) == ("finished", {"message": "tested\n\nVerified: It works."})


async def test_swarm_agent_decides_again(bench: HookBench) -> None:
    gate(bench)
    state = await bench.run("4", "four", "4, as tested", agent=swarm(bench), sandbox="none")
    assert effects(bench) == ["sent_back", ""]
    assert (state.agent_state, state.outputs) == ("finished", {"message": "4, as tested"})
    assert sum(isinstance(event, AgentThinkAction) for event in bench.events) == 1
    assert "does not let you finish yet (exit code 1).\nno tests" in bench.seen()


async def test_swarm_agent_has_its_agents_of_the_hub_answer_the_hook(bench: HookBench) -> None:
    gate(bench)
    save(build(["io", "CoderAgent"], "references"), bench.folder / "swarm.json")
    work = ["4", finish("written"), "It is written", finish("tested"), "It is written and tested"]
    state = await bench.run(*work, agent=str(bench.folder / "swarm.json"), sandbox="none")
    assert effects(bench) == ["sent_back", ""]
    _, second = [event for event in bench.events if isinstance(event, AgentDelegateAction)]
    assert "hook 'gate' does not let you finish yet (exit code 1).\nno tests" in str(second.inputs["task"])
    assert (state.agent_state, state.outputs) == ("finished", {"message": "It is written and tested"})


async def test_an_interrupt_while_the_gate_of_swarm_agent_runs_leaves_a_session_that_resumes(bench: HookBench) -> None:
    gate(bench, "exec sleep 60")
    async with (
        bench.session("4", "four", "4 again", agent=swarm(bench), sandbox="none") as session,
        session.hold_lease(),
    ):
        running = asyncio.create_task(session.run("What is 2 + 2?"))
        async with asyncio.timeout(20):
            while not (bench.folder / "asked").exists():
                await asyncio.sleep(0.05)
            await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
            state = await running
        assert (state.agent_state, bench.hooks[0].problem) == ("paused", "interrupted")
        state = await session.run()
    assert (state.agent_state, state.outputs) == ("finished", {"message": "4 again"})


@pytest.mark.browser
async def test_a_browsing_agent_that_has_reported_asks_its_model_again(bench: HookBench) -> None:
    (bench.project / "page.html").write_text("<title>Shop</title><p>Two shoes.</p>")
    gate(bench)
    report = "```\nsend_msg_to_user('{}')\n```"
    replies = [report.format("2"), report.format("2, as tested")]
    state = await bench.run(*replies, agent="VisualBrowsingAgent", capabilities=SEES)
    assert effects(bench) == ["sent_back", ""]
    (end,) = [event for event in bench.events if isinstance(event, AgentFinishAction)]
    assert end.outputs == state.outputs == {"message": "2, as tested"}
    calls = [event.browser_actions for event in bench.events if isinstance(event, BrowseInteractiveAction)]
    assert calls[1:] == ["send_msg_to_user('2')", "send_msg_to_user('2, as tested')"]
    assert "no tests" in bench.seen()
