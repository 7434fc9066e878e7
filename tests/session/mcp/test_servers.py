"""MCP servers in a session: their start, their tools, their end."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from handiwork.agents.protocols import JSON, TEXT, ReplyProtocol
from handiwork.agents.protocols.ask import read
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.state import State
from handiwork.errors import HandiworkError
from handiwork.events.action import ChangeAgentStateAction, MCPCallAction, MCPToolsAction
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    MCPCallObservation,
    MCPToolsObservation,
    OutputReadObservation,
    UserRejectObservation,
)
from handiwork.events.record import MCPServerEvent, MCPTool, StepStarted
from handiwork.llm.types import Capabilities, Completion
from handiwork.sandbox.host import HostSandbox
from handiwork.sandbox.pipe import LINE_LIMIT
from handiwork.session.approval.rules import ExecutionContext, matches, needs_approval, rule_for
from handiwork.session.mcp.connection import STARTS
from handiwork.session.mcp.server_log import logged_servers, read_log
from handiwork.session.open import reopen
from handiwork.session.session import Session
from handiwork.session.storage.layout import session_dir
from handiwork.session.user_events import approval
from handiwork.settings import load
from tests.session.bench import bash, call, finish
from tests.session.mcp.bench import SMALL, Sessions, mcp_call, small

pytestmark = pytest.mark.slow


async def test_a_tool_is_one_line_until_it_is_looked_up(sessions: Sessions) -> None:
    replies = [call("mcp_tools", server="a", tools=["echo"]), mcp_call("a", "echo", text="hello"), finish()]
    await sessions.run({"a": small()}, replies)
    (looked_up,) = sessions.all(MCPToolsObservation)
    assert "a longer explanation" in looked_up.content
    assert '"text": {"type": "string"}' in looked_up.content
    assert "seconds" not in looked_up.content
    (called,) = sessions.all(MCPCallObservation)
    assert (called.server, called.tool, called.content, called.error) == ("a", "echo", "hello", False)
    (ready,) = sessions.changes()
    state = State()
    for event in sessions.events:
        state.apply(event)
    lookup, mcp = with_mcp((), state)
    assert lookup.name == "mcp_tools"
    lines = [line for line in mcp.tool.description.splitlines() if line.startswith("- ")]
    assert lines[0] == "- a echo: Say it again"
    assert len(lines) == len(ready.tools) == 9
    assert "no name" in ready.content


def test_without_servers_the_tools_are_the_same() -> None:
    tools = ()
    assert with_mcp(tools, State()) is tools


@pytest.mark.parametrize("protocol", [TEXT, JSON])
def test_models_without_tool_calls_read_and_write_them_too(protocol: ReplyProtocol) -> None:
    state = State()
    tool = MCPTool(name="echo", description="Say it again. At length.")
    state.totals.mcp["a"] = MCPServerEvent(server="a", state="ready", tools=(tool,))
    tools = with_mcp((), state)
    for compact in (True, False):
        assert "- a echo: Say it again" in protocol.instructions(tools, compact=compact)
    arguments = {"text": "x"}
    if protocol is TEXT:
        replies = [
            f"I do.\n```mcp_call a echo\n{json.dumps(arguments)}\n```",
            "I look.\n```mcp_tools a tools=echo\n```",
        ]
    else:
        given = {"action": "mcp_call", "server": "a", "tool": "echo", "arguments": arguments}
        replies = [json.dumps(given), json.dumps({"action": "mcp_tools", "server": "a", "tools": ["echo"]})]
    called, looked_up = (read(protocol, Completion(reply), tools)[0] for reply in replies)
    assert isinstance(called, MCPCallAction)
    assert (called.server, called.tool, called.arguments) == ("a", "echo", arguments)
    assert isinstance(looked_up, MCPToolsAction)
    assert (looked_up.server, looked_up.tools) == ("a", ("echo",))


async def test_three_slow_servers_start_side_by_side(sessions: Sessions, tmp_path: Path) -> None:
    begun = [str(tmp_path / f"begun{number}") for number in range(3)]
    # Each answers only after the others have begun: one after the other they would never start.
    servers = {f"s{n}": small("--begun", begun[n], "--after", *begun) for n in range(3)}
    session = await sessions.open(servers, [])
    async with session.hold_lease():
        events = await session.start_mcp()
    assert [(event.server, event.state) for event in events] == [("s0", "ready"), ("s1", "ready"), ("s2", "ready")]


async def test_a_slow_server_delays_no_step_and_joins_later(sessions: Sessions, tmp_path: Path) -> None:
    begun = str(tmp_path / "begun")
    servers = {"slow": small("--after", begun), "quick": small()}
    replies = [bash(f"touch {begun}"), call("mcp_tools", server="slow", tools=["echo"]), bash("true")]
    await sessions.run(servers, [*replies, mcp_call("slow", "echo", text="there"), finish()])
    kinds = [(e.server, e.state) if isinstance(e, MCPServerEvent) else e.kind for e in sessions.events]
    steps = [number for number, kind in enumerate(kinds) if kind == "StepStarted"]
    assert max(kinds.index(("quick", "ready")), kinds.index(("slow", "starting"))) < steps[0]
    assert steps[0] < kinds.index("CmdOutputObservation") < kinds.index(("slow", "ready")) < steps[3]
    assert sessions.all(MCPToolsObservation)[0].content.startswith("echo: Say it again.")
    assert sessions.all(MCPCallObservation)[0].content == "there"


async def test_the_start_of_a_slow_sandbox_is_not_the_servers_own_time(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, limit = HostSandbox.start, 6.0

    async def late(sandbox: HostSandbox) -> None:
        await asyncio.sleep(limit + 1)
        await start(sandbox)

    monkeypatch.setattr(HostSandbox, "start", late)
    monkeypatch.setattr("handiwork.session.mcp.connection.START", limit)
    await sessions.run({"a": small()}, [mcp_call("a", "echo", text="hello"), finish()])
    assert [event.state for event in sessions.changes()] == ["ready"]
    assert [event.content for event in sessions.all(MCPCallObservation)] == ["hello"]


async def test_tools_that_a_running_server_replaces_are_told_with_the_next_step(sessions: Sessions) -> None:
    replies = [mcp_call("a", "grow"), call("mcp_tools", server="a", tools=["grown"]), finish()]
    await sessions.run({"a": small("--growing")}, replies)
    _, changed = sessions.changes()
    steps = sessions.all(StepStarted)
    assert changed.id < steps[1].id, "the step after the call has the new tool"
    state = State()
    for event in sessions.events:
        state.apply(event)
    offered = with_mcp((), state)[1].tool.description
    assert ("- a grow:" in offered, "- a grown: Has just joined" in offered) == (False, True)
    assert sessions.all(MCPToolsObservation)[0].content.startswith("grown: Has just joined.")


async def test_a_server_that_dies_is_told_and_starts_again(sessions: Sessions) -> None:
    replies = [mcp_call("a", "die"), mcp_call("a", "echo", text="again"), bash("echo on"), finish()]
    await sessions.run({"a": small()}, replies)
    (error,) = sessions.all(ErrorObservation)
    assert "ended during the call" in error.content
    assert "exit code 3" in error.content
    assert "a last word" in error.content
    assert [event.state for event in sessions.changes()] == ["ready", "ended", "ready"]
    assert sessions.changes()[1].errors == "a last word"
    assert sessions.all(MCPCallObservation)[0].content == "again"
    assert sessions.events[-1].kind == "AgentFinishAction"


async def test_a_server_that_dies_every_time_is_not_started_for_ever(sessions: Sessions) -> None:
    await sessions.run({"a": small()}, [*(mcp_call("a", "die") for _ in range(STARTS)), mcp_call("a", "die"), finish()])
    errors = [error.content for error in sessions.all(ErrorObservation)]
    assert len(errors) == STARTS + 1
    assert all("ended during the call" in error for error in errors[:STARTS])
    assert "is not started again" in errors[STARTS]


async def test_a_server_that_does_not_start_is_told_with_its_stderr(sessions: Sessions) -> None:
    servers = {"broken": small("--broken"), "missing": {"command": "no-such-program"}, "good": small()}
    await sessions.run(servers, [mcp_call("broken", "echo"), call("mcp_tools", server="missing"), finish()])
    events = {event.server: event for event in sessions.changes()}
    assert events["broken"].state == events["missing"].state == "failed"
    assert events["broken"].content == "its program ended with exit code 1"
    assert events["broken"].errors == "the configuration is missing"
    assert "no-such-program cannot be started" in events["missing"].content
    errors = [error.content for error in sessions.all(ErrorObservation)]
    assert "the configuration is missing" in errors[0]
    assert "no-such-program cannot be started" in errors[1]
    state = State()
    for event in sessions.events:
        state.apply(event)
    assert "- broken cannot be used: its program ended" in with_mcp((), state)[1].tool.description


async def test_each_server_has_a_log_without_secrets(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "an0ther-secret-value")
    servers = {"a": small("--chatty"), "b": small("--broken")}
    replies = [mcp_call("a", "echo", text="an0ther-secret-value"), finish()]
    session = await sessions.open(servers, replies, secrets=("MY_TOKEN",))
    async with session.hold_lease():
        await session.run()
    await session.close()
    folder = session_dir(sessions.data, session.id)
    assert logged_servers(folder) == ["a", "b"]
    log = read_log(folder, "a")
    assert log.startswith("--- started at ")
    assert "called with {'text': '[secret MY_TOKEN]'}\n" in log
    assert '[warning small] {"text": "[secret MY_TOKEN]"}\n' in log
    assert "the configuration is missing" in read_log(folder, "b")


async def test_the_check_of_servers_shows_no_secret_that_one_prints(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "an0ther-secret-value")
    refuses = {"command": "/bin/sh", "args": ["-c", 'echo "bad token: $THE_TOKEN" >&2; exit 1']}
    session = await sessions.open({"a": {**refuses, "env": {"THE_TOKEN": "${MY_TOKEN}"}}}, [], secrets=("MY_TOKEN",))
    async with session.hold_lease():
        (failed,) = await session.start_mcp()
    assert (failed.state, failed.errors) == ("failed", "bad token: [secret MY_TOKEN]")


async def test_the_end_of_a_long_stderr_has_no_part_of_a_secret(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "an0ther-secret-value")
    fails = {"command": "/bin/sh", "args": ["-c", 'yes "bad $THE_TOKEN" | head -n 1000 >&2; exit 1']}
    session = await sessions.open({"a": {**fails, "env": {"THE_TOKEN": "${MY_TOKEN}"}}}, [], secrets=("MY_TOKEN",))
    async with session.hold_lease():
        (failed,) = await session.start_mcp()
    assert set(failed.errors.split("\n")) == {"bad [secret MY_TOKEN]"}


async def test_unknown_servers_and_tools_are_named(sessions: Sessions) -> None:
    replies = [mcp_call("b", "echo"), call("mcp_tools", server="a", tools=["nothing"]), mcp_call("a", "fail"), finish()]
    await sessions.run({"a": small()}, replies)
    errors = [error.content for error in sessions.all(ErrorObservation)]
    assert errors[0] == "There is no MCP server 'b'. There are: a."
    assert "It has: echo, long" in errors[1]
    (failed,) = sessions.all(MCPCallObservation)
    assert (failed.content, failed.error) == ("it did not work", True)


async def test_long_results_are_read_on_demand(sessions: Sessions) -> None:
    session = await sessions.open({"a": small()}, [mcp_call("a", "long", lines=50_000), "what now?"])
    async with session.hold_lease():
        state = await session.run()
        (long,) = sessions.all(MCPCallObservation)
        assert long.blob is not None
        assert long.size == len("\n".join(f"line {number}" for number in range(50_000)))
        assert len(long.content) + len(long.tail) < 20_000
        assert state.totals.outputs == [long.blob]
    text = (await sessions.store.blobs.read(long.blob, 0, long.size)).decode()
    assert text.splitlines()[31_000] == "line 31000"


async def test_pages_of_a_long_result(sessions: Sessions) -> None:
    lines = "\n".join(f"line {number}" for number in range(50_000)).encode()
    blob = await sessions.store.blobs.put(lines)
    replies = [mcp_call("a", "long", lines=50_000), call("read_output", output=blob[:12], start=40_000, end=40_001)]
    await sessions.run({"a": small()}, [*replies, finish()])
    assert sessions.all(OutputReadObservation)[0].content == "line 39999\nline 40000\n"


async def test_pictures_are_blobs_and_bad_ones_are_left_out(sessions: Sessions) -> None:
    await sessions.run({"a": small()}, [mcp_call("a", "draw"), finish()], capabilities=Capabilities(vision=True))
    (drawn,) = sessions.all(MCPCallObservation)
    (picture,) = drawn.images
    assert picture.blob is not None
    assert (await sessions.store.blobs.read(picture.blob, 0, 8)).startswith(b"\x89PNG")
    assert drawn.content.startswith("a picture\n[a picture is left out: it is no image/png or image/jpeg of usual size")
    shown = [part.blob for message in sessions.llm.requests[-1] for part in message.content if part.blob]
    assert shown == [picture.blob]


async def test_a_secret_is_passed_by_name(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "an0ther-secret-value")
    servers = {"a": small(env={"THE_TOKEN": "${MY_TOKEN}"}), "b": small(env={"THE_TOKEN": "${OTHER}"})}
    await sessions.run(servers, [mcp_call("a", "environment", variable="THE_TOKEN"), finish()], secrets=("MY_TOKEN",))
    assert sessions.all(MCPCallObservation)[0].content == "[secret MY_TOKEN]"
    failed = next(event for event in sessions.changes() if event.server == "b")
    assert failed.content == "it needs the secret OTHER: add --secret OTHER"


async def run_until_interrupted(sessions: Sessions, session: Session) -> None:
    """Run the session and interrupt its first call of a server's tool."""

    async def interrupt() -> None:
        while not sessions.all(MCPCallAction):
            await asyncio.sleep(0.01)
        await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))

    async with session.hold_lease():
        interrupting = asyncio.create_task(interrupt())
        state = await session.run()
        await interrupting
    assert state.agent_state == "paused"


async def test_an_interrupt_ends_a_call(sessions: Sessions) -> None:
    session = await sessions.open({"a": small()}, [mcp_call("a", "sleep", seconds=60), finish()])
    await run_until_interrupted(sessions, session)
    assert sessions.all(ErrorObservation)[0].content == "The call was interrupted."


async def test_an_interrupt_ends_the_wait_for_a_server_that_never_answers(sessions: Sessions) -> None:
    silent = {"command": "sleep", "args": ["600"]}
    session = await sessions.open({"a": silent}, [mcp_call("a", "echo", text="1"), finish()])
    await run_until_interrupted(sessions, session)
    assert [each.content for each in sessions.all(ErrorObservation)] == ["The call was interrupted."]
    assert [event.state for event in sessions.all(MCPServerEvent)] == ["starting"]


async def test_what_a_server_does_wrong_is_told_and_the_session_goes_on(sessions: Sessions) -> None:
    replies = [
        mcp_call("a", "sleep", seconds=600),
        mcp_call("b", "line", size=2 * LINE_LIMIT),
        mcp_call("b", "echo", text="again"),
        bash("echo on"),
        finish(),
    ]
    await sessions.run({"a": small(timeout=0.5), "b": small()}, replies)
    late, long = sessions.all(ErrorObservation)
    assert late.content == "a gave no answer in 0.5 s"
    assert f"printed a line of more than {LINE_LIMIT} characters" in long.content
    assert sessions.all(MCPCallObservation)[0].content == "again"
    assert sessions.events[-1].kind == "AgentFinishAction"


async def test_a_call_is_asked_about_and_remembered_by_server_and_tool(sessions: Sessions) -> None:
    replies = [mcp_call("a", "echo", text="1"), mcp_call("a", "echo", text="2"), mcp_call("a", "fail"), finish()]
    session = await sessions.open({"a": small()}, replies, confirmation="risky")
    async with session.hold_lease():
        state = await session.run()
        assert state.agent_state == "awaiting_user_confirmation"
        await session.log.append(approval(state.pending[0], True, "", True))
        state = await session.run()
        assert state.agent_state == "awaiting_user_confirmation"
        assert state.totals.rules == ["mcp a echo"]
        assert [each.content for each in sessions.all(MCPCallObservation)] == ["1", "2"]
        await session.log.append(approval(state.pending[0], False, "not that one", False))
        state = await session.run()
    assert state.agent_state == "finished"
    assert sessions.all(UserRejectObservation)[0].content == "not that one"


def test_the_rule_of_a_call() -> None:
    action = MCPCallAction(server="a", tool="echo", arguments={"text": "x"})
    sandbox = ExecutionContext(isolated=True, in_place=False)
    assert needs_approval(action, "never", sandbox, ()) is None
    assert "MCP server a" in (needs_approval(action, "risky", sandbox, ()) or "")
    assert needs_approval(action, "risky", sandbox, [rule_for(action)]) is None
    assert matches("mcp a echo", action.model_copy(update={"arguments": {}}))
    assert not matches("mcp a echo", action.model_copy(update={"tool": "fail"}))
    assert not matches("mcp a echo", action.model_copy(update={"server": "b"}))


async def test_a_resumed_session_starts_its_servers_with_their_first_call(sessions: Sessions, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    replies = [
        mcp_call("a", "echo", text="1"),
        call("ask", question="more?"),
        mcp_call("a", "echo", text="2"),
        finish(),
    ]
    script.write_text("\n".join(reply.model_dump_json() for reply in replies))
    log = tmp_path / "log"
    session = await sessions.open({"a": small("--log", str(log))}, replies[:2])
    async with session.hold_lease():
        await session.run()
    assert log.read_text().count("initialize") == 2  # the request and the notification after it
    again = await reopen(sessions.store, sessions.data, session.id, sessions.watch, model=f"scripted:{script}")
    async with again.hold_lease():
        assert log.read_text().count("initialize") == 2
        state = await again.run("yes")
    assert state.agent_state == "finished"
    assert log.read_text().count("initialize") == 4
    assert [each.content for each in sessions.all(MCPCallObservation)][-1] == "2"
    assert [event.state for event in sessions.changes()].count("ready") <= 2


async def test_in_bubblewrap_a_server_works_on_the_copy(sessions: Sessions) -> None:
    mounts = (str(SMALL.parent), sys.base_prefix, str(Path(sys.executable).parents[1]))
    replies = [mcp_call("a", "write", path="new.txt"), bash("cat new.txt"), mcp_call("a", "die"), finish()]
    await sessions.run({"a": small()}, replies, sandbox="bubblewrap", mount_ro=mounts)
    assert sessions.all(MCPCallObservation)[0].content == "written"
    assert sessions.all(CmdOutputObservation)[0].content == "by a server\n"
    assert "a last word" in sessions.all(ErrorObservation)[0].content
    assert not (sessions.workspace / "new.txt").exists()


async def test_no_file_of_a_repository_adds_a_server(sessions: Sessions, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    server = small("--begun", str(begun))
    tables = f"[mcp.evil]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"
    listed = json.dumps({"mcpServers": {"evil": server}})
    files = {".mcp.json": listed, ".cursor/mcp.json": listed, "config.toml": tables, ".handiwork/config.toml": tables}
    for name, text in {**files, ".config/handiwork/config.toml": tables}.items():
        (sessions.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (sessions.workspace / name).write_text(text)
    await sessions.run({}, [bash("true"), finish()])
    assert sessions.changes() == []
    assert not begun.exists()


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({}, "either a command or a url"),
        ({"command": "a", "url": "http://a"}, "either a command or a url"),
        ({"url": "ftp://a"}, "must begin with http"),
        ({"url": "http://a", "env": {"A": "b"}}, "a url takes headers"),
        ({"command": "a", "headers": {"A": "b"}}, "a command takes env"),
        ({"command": "a", "env": {"GITHUB_TOKEN": "ghp_123"}}, "holds a value that the log would keep"),
        ({"url": "http://a", "headers": {"Authorization": "Bearer xyz"}}, "holds a value that the log would keep"),
        ({"command": "a", "comand": "b"}, "comand"),
    ],
)
def test_settings_that_cannot_be(server: dict[str, object], problem: str) -> None:
    with pytest.raises(HandiworkError, match=problem) as error:
        load({"mcp": {"s": server}})
    assert "ghp_123" not in str(error.value)
    assert "xyz" not in str(error.value)
