"""A terminal that shows a session of another process waits for it, and resumes nothing by itself."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

from handiwork.agents.state import State
from handiwork.cli.commands.run import model_changes
from handiwork.cli.conversation.current_session import CurrentSession
from handiwork.cli.dialog import remote_session
from handiwork.cli.dialog.remote_session import RemoteSession, open_remote
from handiwork.cli.terminal.view import View
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.observation import AgentStateChangedObservation
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig, config_of
from handiwork.settings import SettingsError

PATIENCE = 10.0


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    monkeypatch.setattr(remote_session, "ALONE", 0.05)
    async with Store.open(tmp_path / "data") as store:
        yield store


CONFIG = SessionConfig(agent="CodeActAgent", model="scripted:none", workspace="/nowhere")


@pytest.fixture
async def paused(store: Store) -> RemoteSession:
    """A paused session that no process runs any more."""
    log = await store.create(
        agent="CodeActAgent",
        model="scripted:none",
        events=[
            CONFIG.started("CodeActAgent", "scripted:none", "/nowhere"),
            MessageAction(content="greet the world", source="user"),
            AgentStateChangedObservation(agent_state="paused", reason="limit"),
        ],
    )
    return RemoteSession(log, CONFIG, lambda _: None)


async def resume(log: EventLog) -> None:
    await log.append(ChangeAgentStateAction(agent_state="running", source="user"))


async def test_a_session_that_no_process_runs_is_not_taken_for_resumed(paused: RemoteSession) -> None:
    waiting = asyncio.create_task(paused.wait_until_resumed())
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert await paused.log.head() == 3
    await resume(paused.log)
    await asyncio.wait_for(waiting, PATIENCE)
    assert paused.state.agent_state == "running"


async def test_a_session_that_runs_is_left_once_no_process_runs_it(paused: RemoteSession) -> None:
    state = await asyncio.wait_for(paused.run("go on"), PATIENCE)
    assert state.agent_state == "running"


async def test_a_new_address_of_the_model_reaches_the_process_that_runs_the_session(store: Store) -> None:
    config = CONFIG.model_copy(update={"model": "qwen3", "base_url": "http://old/v1"})
    started = config.started("CodeActAgent", "qwen3", "/nowhere")
    log = await store.create(agent="CodeActAgent", model="qwen3", events=[started])
    async with log.lease():
        await open_remote(log, lambda _: None, await model_changes(log, {"base_url": "http://new/v1"}))
    changed = await config_of(log)
    assert (changed.model, changed.base_url) == ("qwen3", "http://new/v1")


async def test_an_address_is_refused_for_a_session_whose_model_has_no_server(paused: RemoteSession) -> None:
    with pytest.raises(SettingsError, match="--base-url needs a model on a server, not scripted:none: add --model"):
        await model_changes(paused.log, {"base_url": "http://new/v1"})
    assert await model_changes(paused.log, {"base_url": "http://new/v1", "model": "qwen3"})


async def test_a_conversation_shows_once_that_no_process_runs_its_session(store: Store, paused: RemoteSession) -> None:
    shown: list[str] = []

    async def ask(_: str) -> str | None:
        raise AssertionError("a session that runs asks nothing")

    async def show_end(_: EventLog, state: State) -> None:
        shown.append(state.agent_state)

    view = View(Console(file=io.StringIO()), live=False)
    conversation = CurrentSession(store, CONFIG, view, ask, show_end, shown.append)
    await conversation.switch(paused.id)
    async with paused.log.lease(), asyncio.timeout(PATIENCE):
        await conversation.resume()
        while not shown:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert shown == ["running"]
    assert await paused.log.head() == 4
    await conversation.close()
