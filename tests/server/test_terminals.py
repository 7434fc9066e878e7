"""The user's own terminals in sessions' sandboxes: who may open one, and when it ends."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.record import SessionWanted, SettingsChanged
from handiwork.log.store import Store
from handiwork.server.supervisor import SessionSupervisor
from handiwork.session.config import SessionConfig, SessionError
from handiwork.session.open import create
from handiwork.session.session import Session
from handiwork.settings import load
from scripts.harness.serving import PATIENCE, Api, bash, finish, until

pytestmark = pytest.mark.slow


def open_terminal(api: Api, session: str, **query: object) -> ClientConnection:
    options = {"rows": 24, "columns": 80, **query}
    return api.follow(f"{session}/terminal?{urlencode(options)}")


def read_until(terminal: ClientConnection, end: str) -> str:
    """Return what the terminal shows up to a text."""
    shown = b""
    while end.encode() not in shown:
        piece = terminal.recv(PATIENCE)
        shown += piece if isinstance(piece, bytes) else b""
    return shown.decode()


def refusal(terminal: ClientConnection) -> tuple[str, int]:
    """Return the problem that the server reports, and the code with which it closes the connection."""
    problem = json.loads(terminal.recv(PATIENCE))["error"]
    return problem, closing_code(terminal)


def closing_code(terminal: ClientConnection) -> int:
    with suppress(ConnectionClosed):
        while True:
            terminal.recv(PATIENCE)
    assert terminal.close_code is not None
    return terminal.close_code


def waiting(api: Api) -> str:
    """Return a session that has finished and keeps its sandbox."""
    session = api.create(bash("true"), finish())
    api.until(session, "finished")
    return session


def diff(api: Api, session: str) -> str:
    return api.get(f"{session}/diff")["patch"]


def test_what_is_typed_runs_in_the_sandbox_and_is_no_event_but_a_change(api: Api) -> None:
    session = waiting(api)
    events = len(api.events(session))
    with open_terminal(api, session) as terminal:
        assert json.loads(terminal.recv(PATIENCE)) == {"ready": True}
        terminal.send("echo 'grüße' > mine.txt; cat mine.txt; stty size\n".encode())
        assert "grüße" in read_until(terminal, "24 80")
        terminal.send(json.dumps({"rows": 50, "columns": 132}))
        terminal.send(b"stty size\n")
        read_until(terminal, "50 132")
        assert "+grüße" in diff(api, session)
    assert not (api.workspace / "mine.txt").exists()
    assert len(api.events(session)) == events


def test_a_closed_page_ends_the_shell_and_its_programs(api: Api) -> None:
    session = waiting(api)
    with open_terminal(api, session) as terminal, open_terminal(api, session) as other:
        terminal.send(b"sleep 1234 & echo be''gun; sleep 1234\n")
        read_until(terminal, "begun")
        other.send(b"until [ $(pgrep -c sleep) = 2 ]; do read -t 0.1; done; echo bo''th\n")
        read_until(other, "both")
        terminal.close()
        other.send(b"while pgrep sleep > /dev/null; do read -t 0.1; done; echo no''ne\n")
        read_until(other, "none")


def test_exit_closes_the_connection(api: Api) -> None:
    session = waiting(api)
    with open_terminal(api, session) as terminal:
        terminal.send(b"exit\n")
        assert closing_code(terminal) == 1000


def test_a_page_that_shows_nothing_stops_the_output_and_ctrl_c_still_works(api: Api) -> None:
    session = waiting(api)
    with open_terminal(api, session) as terminal:
        terminal.send(b"yes\n")
        received = 0
        while received < 1 << 20:
            received += len(terminal.recv(PATIENCE))
        with suppress(TimeoutError):
            while received < 8 << 20:
                received += len(terminal.recv(1))
        assert received < 2 << 20
        terminal.send(b"\x03")
        terminal.send(json.dumps({"shown": received}))
        terminal.send(b"echo al''ive\n")
        read_until(terminal, "alive")


def test_without_the_token_or_from_another_origin_there_is_no_terminal(api: Api) -> None:
    path = f"{waiting(api)}/terminal?rows=24&columns=80"
    with pytest.raises(InvalidStatus) as refused:
        connect(api.url.replace("http", "ws", 1) + path)
    assert refused.value.response.status_code == 401
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        with pytest.raises(InvalidStatus) as refused:
            api.follow(path, origin=Origin(origin))
        assert refused.value.response.status_code == 403


def test_a_session_that_does_not_exist_and_a_size_that_is_none(api: Api) -> None:
    with open_terminal(api, "/api/sessions/00000000") as terminal:
        assert refusal(terminal)[1] == 4404
    session = waiting(api)
    for size in ({"rows": 0}, {"columns": "wide"}, {"colour": "red"}):
        with open_terminal(api, session, **size) as terminal:
            assert refusal(terminal)[1] == 4422
    for message in ('{"rows": 5}', "no JSON", '{"shown": -1}'):
        with open_terminal(api, session) as terminal:
            assert terminal.recv(PATIENCE) == '{"ready": true}'
            terminal.send(message)
            assert closing_code(terminal) == 4422


def test_a_stopped_session_has_no_sandbox_until_the_user_starts_it_and_the_agent_takes_no_step(api: Api) -> None:
    session = waiting(api)
    with open_terminal(api, session) as terminal:
        terminal.send(b"echo he''re; cd /tmp\n")
        read_until(terminal, "here")
        api.post(f"{session}/stop")
        assert closing_code(terminal) == 4409
    until(lambda: not api.get(session)["run_by"], "the end of the sandbox")
    with open_terminal(api, session) as terminal:
        problem, code = refusal(terminal)
        assert (code, "does not run: start it" in problem) == (4409, True)
    steps = api.types(session)
    with open_terminal(api, session, start="true") as terminal:
        terminal.send(b"cat greeting.txt\n")
        read_until(terminal, "hello")
    assert [kind for kind in api.types(session) if kind not in steps] == []
    assert api.get(session)["state"] == "stopped"


async def closed_before_its_first_step(store: Store, folder: Path) -> Session:
    """Create a session that a process then leaves, like a `handiwork run` that is killed."""
    (folder / "project").mkdir()
    (folder / "script.jsonl").write_text(json.dumps(finish()) + "\n")
    config = SessionConfig.of(load({"model": f"scripted:{folder}/script.jsonl"}), folder / "project")
    session = await create(store, folder / "data", config, lambda _: None, "begin", MessageAction(content="begin"))
    await session.close()
    return session


async def test_settings_and_files_of_an_interrupted_session_are_the_user_s_and_its_agent_takes_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with Store.open(tmp_path / "data") as store:
        begun = await closed_before_its_first_step(store, tmp_path)
        supervisor = SessionSupervisor(store, tmp_path / "data", idle=0.1)
        await supervisor.say(begun.log, SettingsChanged(confirmation="always", source="user"))
        assert await supervisor.interrupted(await begun.log.info())
        async with supervisor.opened(begun.log) as opened:
            await asyncio.sleep(0.2)
            assert (opened.state.agent_state, opened.state.time) == ("paused", 0)
        assert "StepStarted" not in [event.kind for event in await begun.log.read()]
        assert (await begun.log.info()).state == "paused"
        await supervisor.close()


async def test_a_session_that_is_stopped_after_its_process_ended_has_not_run_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with Store.open(tmp_path / "data") as store:
        begun = await closed_before_its_first_step(store, tmp_path)
        supervisor = SessionSupervisor(store, tmp_path / "data")
        await supervisor.say(begun.log, ChangeAgentStateAction(agent_state="stopped", source="user"))
        state = await supervisor.state(begun.log)
        assert (state.agent_state, state.time) == ("stopped", 0)
        await supervisor.close()


async def test_a_session_that_another_command_once_wanted_stays_open_when_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with Store.open(tmp_path / "data") as store:
        ended = await closed_before_its_first_step(store, tmp_path)
        stop = ChangeAgentStateAction(agent_state="stopped", source="user")
        await ended.log.append(stop, SessionWanted(source="user"))  # as `handiwork apply` does for the commits
        supervisor = SessionSupervisor(store, tmp_path / "data")
        async with supervisor.opened(ended.log):
            pass
        await asyncio.sleep(0.2)
        assert supervisor.counts == (1, 1)
        await ended.log.append(SessionWanted(source="user"))
        async with asyncio.timeout(PATIENCE):
            while supervisor.runs(ended.log.id):
                await asyncio.sleep(0.02)
        await supervisor.close()


async def test_an_open_terminal_keeps_a_waiting_session_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in (bash("true"), finish())))
    config = SessionConfig.of(load({"model": f"scripted:{script}"}), tmp_path / "project")
    async with Store.open(tmp_path / "data") as store:
        supervisor = SessionSupervisor(store, tmp_path / "data", idle=0.1)
        log = await supervisor.create(config, MessageAction(content="begin"), "begin")
        async with supervisor.attached(log, start=True):
            async with asyncio.timeout(PATIENCE):
                while supervisor.counts != (1, 1):
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.4)
            assert supervisor.counts == (1, 1)
        async with asyncio.timeout(PATIENCE):
            while supervisor.runs(log.id):
                await asyncio.sleep(0.02)
        with pytest.raises(SessionError, match="does not run"):
            async with supervisor.attached(log):
                pass
        await supervisor.close()
