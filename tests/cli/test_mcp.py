"""``handiwork mcp``: another program drives sessions by the official SDK; the user's own servers are checked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.cli.program import HANDIWORK, Program, bash, finish
from tests.session.mcp.bench import SMALL


def ask(question: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "ask", "arguments": {"question": question}}]}


def write(path: str, content: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "write", "arguments": {"path": path, "content": content}}]}


class Caller:
    """Another program, which calls the tools of ``handiwork mcp``."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.content
        return result.content[0].text

    async def until(self, session: str, state: str) -> list[dict[str, Any]]:
        """Follow a session until it is in the state; return its events."""
        events: list[dict[str, Any]] = []
        cursor = 0
        async with asyncio.timeout(60):
            while True:
                followed = await self("follow", session=session, after=cursor, wait=5)
                events += followed["events"]
                cursor = followed["cursor"]
                if followed["state"] == state and not followed["more"]:
                    return events


@asynccontextmanager
async def calling(program: Program) -> AsyncGenerator[Caller]:
    """Run ``handiwork mcp``. No fixture: the SDK wants its client left in the task that entered it."""
    command = StdioServerParameters(command=str(HANDIWORK), args=["mcp"], env=program.environment)
    async with Client(command) as client:
        yield Caller(client)


@pytest.mark.slow
async def test_a_program_drives_a_whole_session(program: Program) -> None:
    async with calling(program) as caller:
        await _drive(program, caller)


async def _drive(program: Program, caller: Caller) -> None:
    assert {tool.name for tool in (await caller.client.list_tools()).tools} == {
        *("start", "follow", "answer", "interrupt", "diff", "apply", "list")
    }
    model = program.script(
        bash("rm greeting.txt"), write("new.txt", "new\n"), ask("Which colour?"), finish("All done.")
    )
    started = await caller(
        "start", task="change it", workspace=str(program.workspace), model=model, confirmation="always", max_time=100
    )
    session = started["session"]
    await caller.until(session, "awaiting_user_confirmation")
    (asked,) = (await caller("follow", session=session))["asked"]
    assert asked["text"] == "run rm greeting.txt"
    assert asked["rule"] == "exactly rm greeting.txt"
    await caller("answer", session=session, action=asked["action"], allowed=False, comment="keep it")
    await caller.until(session, "awaiting_user_confirmation")
    (asked,) = (await caller("follow", session=session))["asked"]
    await caller("answer", session=session, action=asked["action"], allowed=True)
    events = await caller.until(session, "awaiting_user_input")
    assert events[-1]["text"] == "say Which colour?"
    assert "keep it" in [event["text"] for event in events if event["type"] == "UserRejectObservation"]
    await caller("answer", session=session, message="blue")
    events = await caller.until(session, "finished")
    assert [event["type"] for event in events].count("AgentFinishAction") == 1
    ids = [event["id"] for event in events]
    assert ids == sorted(set(ids))
    assert (await caller("follow", session=session, wait=0))["outputs"] == {"message": "All done."}

    diff = await caller("diff", session=session)
    assert [file["path"] for file in diff["files"]] == ["new.txt"]
    assert "+new" in diff["patch"]
    assert (await caller("apply", session=session, dry_run=True))["written"] == ["new.txt"]
    assert not (program.workspace / "new.txt").exists()
    assert (await caller("apply", session=session))["written"] == ["new.txt"]
    assert (program.workspace / "new.txt").read_text() == "new\n"
    (row,) = (await caller("list"))["sessions"]
    assert (row["id"], row["state"]) == (session, "finished")


@pytest.mark.slow
async def test_a_session_whose_process_ended_is_interrupted_and_a_message_resumes_it(program: Program) -> None:
    model = program.script(bash("sleep 60"), finish("All done."))
    with program.at_terminal("run", "wait", "--model", model) as terminal:  # its end kills the process
        terminal.until("sleep 60")
    async with calling(program) as caller:
        (row,) = (await caller("list"))["sessions"]
        session = row["id"]
        assert row["state"] == "interrupted"
        assert (await caller("follow", session=session, wait=0))["state"] == "interrupted"
        await caller("answer", session=session, message="go on")
        await caller.until(session, "finished")


@pytest.mark.slow
async def test_refusals_say_why(program: Program) -> None:
    async with calling(program) as caller:
        await _be_refused(program, caller)


async def _be_refused(program: Program, caller: Caller) -> None:
    assert "no session's id begins with" in await caller.refusal("follow", session="ffff")
    model = program.script(write("greeting.txt", "hi\n"), finish())
    refusal = await caller.refusal("start", task="x", workspace=str(program.workspace), agent="helper.py:Helper")
    assert "'helper.py:Helper' is not the name of an installed agent" in refusal
    assert "no-such-folder" in await caller.refusal("start", task="x", workspace="/no-such-folder", model=model)
    session = (await caller("start", task="x", workspace=str(program.workspace), model=model))["session"]
    await caller.until(session, "finished")
    assert "either a message, or an action" in await caller.refusal("answer", session=session)
    assert "does not wait" in await caller.refusal("answer", session=session, action=1, allowed=True)
    (program.workspace / "greeting.txt").write_text("something else\n")
    assert "1 conflict:" in await caller.refusal("apply", session=session)
    assert (program.workspace / "greeting.txt").read_text() == "something else\n"


@pytest.mark.slow
async def test_over_http_with_the_token_alone(program: Program) -> None:
    process = await asyncio.create_subprocess_exec(
        HANDIWORK, "mcp", "--http", "0", env=program.environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        link, _, header = (await process.stdout.readline()).decode().partition(" with the header ")
        async with httpx2.AsyncClient() as stranger:
            assert (await stranger.post(link, json={})).status_code == 401
        name, _, value = header.strip().partition(": ")
        async with (
            httpx2.AsyncClient(headers={name: value}, timeout=60) as http,
            Client(streamable_http_client(link, http_client=http)) as client,
        ):
            await _drive(program, Caller(client))
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.slow
def test_check_lists_tools_and_shows_why_a_server_fails(program: Program) -> None:
    program.settings.parent.mkdir(parents=True, exist_ok=True)
    checked = program("mcp", "check")
    assert checked.returncode == 2
    assert "has no MCP server" in checked.stderr
    table = f'command = "{sys.executable}"\nargs = ["-I", "{SMALL}"'
    program.settings.write_text(f'[mcp.good]\n{table}, "--chatty"]\n[mcp.bad]\n{table}, "--broken"]\n')
    checked = program("mcp", "check", "--sandbox", "none")
    assert checked.returncode == 1
    assert "good  ready, 9 tools" in checked.stdout
    assert "  echo: Say it again\n" in checked.stdout
    assert "bad  failed\n  its program ended with exit code 1\n  the configuration is missing\n" in checked.stdout
    assert program("sessions").stdout == ""

    echo = {"name": "mcp_call", "arguments": {"server": "good", "tool": "echo", "arguments": {"text": "hello"}}}
    ran = program.run({"tool_calls": [echo]}, finish(), flags=("--confirm", "never"))
    assert "mcp: good is ready, 9 tools" in ran.stdout
    assert "mcp: bad failed: its program ended with exit code 1" in ran.stdout
    status = program("mcp", "status")
    assert "good  ready, 9 tools" in status.stdout
    assert "the configuration is missing" in status.stdout
    assert "the configuration is missing\n" in program("mcp", "log", "bad").stdout
    good = program("mcp", "log", "good").stdout
    assert "\ncalled with {'text': 'hello'}\n" in good, "without the escape sequence before it"
    assert '[warning small] {"text": "hello"}\n' in good
    missing = program("mcp", "log", "other")
    assert missing.returncode == 2
    assert "it has logs of: bad, good" in missing.stderr
