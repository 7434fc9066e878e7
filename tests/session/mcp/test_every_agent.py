"""The tools of MCP servers, used by each agent of the hub that acts by tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handiwork.events.action import CmdRunAction
from handiwork.events.observation import ErrorObservation, MCPCallObservation, MCPToolsObservation
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities
from handiwork.session.user_events import approval
from tests.session.bench import call, finish
from tests.session.mcp.bench import Sessions, mcp_call, small

pytestmark = pytest.mark.slow

LOOK = call("mcp_tools", server="a", tools=["echo"])
ECHO = mcp_call("a", "echo", text="it's me")


def block(command: str) -> str:
    return f"I go on.\n```\n{command}\n```"


def act(name: str, **arguments: Any) -> str:
    return json.dumps({"thought": "I go on.", "action": name, **arguments})


NATIVE, TEXT = Capabilities(), Capabilities(tools=False)
OUTPUTS: dict[str, dict[str, Any]] = {
    "CommitWriterAgent": {"message": "it"},
    "MathAgent": {"answer": "it"},
    "PostgresAgent": {"message": "it"},
    "RepoStudyAgent": {"summary": "it"},
    "StudyRepoForTaskAgent": {"summary": "it"},
    "TypoFixerAgent": {"summary": "it"},
    "VerifierAgent": {"completed": True, "summary": "it"},
}
WAYS: dict[str, tuple[str, Capabilities, list[Reply | str]]] = {
    "planner": (
        "PlannerAgent",
        NATIVE,
        [call("plan_task", goal="Ask"), LOOK, ECHO, call("modify_task", task_id="0", state="completed"), finish()],
    ),
    "monologue": ("MonologueAgent", NATIVE, [LOOK, ECHO, finish()]),
    "manager": ("ManagerAgent", NATIVE, [LOOK, ECHO, finish()]),
    "swe": ("SWEAgent", NATIVE, [LOOK, ECHO, call("submit")]),
    "swe in text": (
        "SWEAgent",
        TEXT,
        [
            block("mcp_call a"),
            block("mcp_call a echo not JSON"),
            block("mcp_tools a echo"),
            block('mcp_call a echo {"text": "it\'s me"}'),
            block("submit"),
        ],
    ),
    "swe in JSON": (
        "SWEAgent",
        Capabilities(tools=False, protocol="json"),
        [
            act("mcp_tools", server="a", tools=["echo"]),
            act("mcp_call", server="a", tool="echo", arguments={"text": "it's me"}),
            act("submit"),
        ],
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_agent_looks_a_tool_up_and_calls_it(sessions: Sessions, way: str) -> None:
    agent, capabilities, replies = WAYS[way]
    session = await sessions.open({"a": small()}, replies, agent=agent, capabilities=capabilities)
    async with session.hold_lease():
        state = await session.run()
    assert state.agent_state == "finished", state.last_error
    (looked_up,) = sessions.all(MCPToolsObservation)
    assert "a longer explanation" in looked_up.content
    (called,) = sessions.all(MCPCallObservation)
    assert called.content == "it's me"
    requests = ["".join(part.text or "" for m in request for part in m.content) for request in sessions.llm.requests]
    assert "it's me" in requests[-1]
    if capabilities == TEXT:
        assert "- a echo: Say it again" in requests[0]
        errors = [error.content for error in sessions.all(ErrorObservation)]
        assert "Usage: mcp_call <server> <tool> <arguments>" in errors[0]
        assert "must be a JSON object, not 'not JSON'" in errors[1]
        assert "Usage: mcp_call" not in requests[-1], "failed turns are dropped after a success"


@pytest.mark.parametrize("agent", OUTPUTS)
async def test_a_micro_agent_of_the_hub_calls_them_after_an_approval(sessions: Sessions, agent: str) -> None:
    replies = [ECHO, call("finish", **OUTPUTS[agent])]
    session = await sessions.open({"a": small()}, replies, agent=agent, confirmation="risky")
    async with session.hold_lease():
        state = await session.run()
        while isinstance(state.pending[0], CmdRunAction):  # of the agent's context
            await session.log.append(approval(state.pending[0], True, "", False))
            state = await session.run()
        assert state.agent_state == "awaiting_user_confirmation"
        assert not sessions.all(MCPCallObservation)
        await session.log.append(approval(state.pending[0], True, "", False))
        state = await session.run()
    assert state.agent_state == "finished", state.last_error
    assert [called.content for called in sessions.all(MCPCallObservation)] == ["it's me"]


@pytest.mark.parametrize(("tools", "has_it"), [("", True), ("tools: [bash]\n", False), ("tools: [mcp]\n", True)])
async def test_a_micro_agent_has_them_unless_its_tools_leave_them_out(
    sessions: Sessions, tmp_path: Path, tools: str, has_it: bool
) -> None:
    file = tmp_path / "echo.md"
    file.write_text(f"---\nname: EchoAgent\n{tools}---\nEcho it.\n")
    await sessions.run({"a": small()}, [ECHO, finish()], agent=str(file))
    assert [called.content for called in sessions.all(MCPCallObservation)] == (["it's me"] if has_it else [])
    assert ["There is no tool 'mcp_call'" in error.content for error in sessions.all(ErrorObservation)] == (
        [] if has_it else [True]
    )
    assert bool(sessions.changes()) == has_it
