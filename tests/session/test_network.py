"""What a session's sandbox may reach: it is asked of the log, and every decision is in it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import AgentStateChangedObservation, CmdOutputObservation
from handiwork.events.record import Confirmation, EgressEvent, NetworkAllowed, PermissionsRevoked, SessionStarted
from handiwork.llm.scripted.script import Reply
from handiwork.log.eventlog import EventLog
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.session.config import config_of
from handiwork.session.open import recorded_egress
from handiwork.session.session import Session
from handiwork.session.user_events import network_allowed
from handiwork.workspace.layers import SandboxPaths
from tests.egress.world import way_out
from tests.session.bench import Bench, bash, finish

TRY = "until curl -sS http://example.org/ | tee got | grep -q 'here I am'; do sleep 0.1; done; cat got"


class Office:
    """Sessions in bubblewrap whose sandbox finds one host, example.org, if it may reach it."""

    def __init__(self, bench: Bench, folder: Path, stack: AsyncExitStack) -> None:
        self.bench, self._folder, self._stack = bench, folder, stack

    async def session(self, *replies: Reply, log: EventLog, confirmation: Confirmation = "never") -> Session:
        folder = self._folder / log.id
        folder.mkdir(mode=0o700)
        shutil.copytree(self.bench.workspace, folder / "base")
        way = await self._stack.enter_async_context(way_out(folder))
        egress = replace(recorded_egress(log, lambda: session.state.totals.network), internet=way.world)
        blobs = self.bench.store.blobs
        sandbox = BubblewrapSandbox(
            SandboxPaths(folder, self.bench.workspace, folder / "base"), blobs.put, egress=egress
        )
        session = await self.bench.session(replies, log, sandbox=sandbox, confirmation=confirmation)
        return session


@pytest.fixture
async def office(bench: Bench, tmp_path: Path) -> AsyncIterator[Office]:
    async with AsyncExitStack() as stack:
        yield Office(bench, tmp_path, stack)


def decisions(events: list[Event]) -> list[tuple[str, bool]]:
    return [(event.host, event.allowed) for event in events if isinstance(event, EgressEvent)]


async def test_a_refused_host_can_be_allowed_while_the_command_runs(office: Office) -> None:
    bench = office.bench
    log = await bench.log()
    session = await office.session(bash(TRY), finish(), log=log)

    running = asyncio.create_task(session.run("go"))
    await bench.until(EgressEvent)
    # As another process does, which has the log but does not run the session.
    other = await bench.store.log(log.id)
    await other.append(NetworkAllowed(hosts=("example.org",), source="user"))
    state = await running
    assert state.agent_state == "finished"
    assert state.totals.network == ["example.org"]
    seen = decisions(await log.read())
    assert seen[0] == ("example.org", False)
    assert seen[-1] == ("example.org", True)
    (said,) = [event.content for event in bench.events if isinstance(event, CmdOutputObservation)]
    assert said.strip() == "here I am"


async def test_before_and_after_a_run_the_sandbox_reaches_a_host_while_the_session_is_held(office: Office) -> None:
    log = await office.bench.log()
    await log.append(NetworkAllowed(hosts=("example.org",), source="user"))
    session = await office.session(finish(), finish(), log=log)
    sandbox = await session.sandbox()
    ask = CmdRunAction(command="curl -sS http://example.org/")

    async def answered() -> str:
        return (await sandbox.execute(ask)).content.strip()

    assert "here I am" not in await answered()
    state = await session.run("go")
    assert state.agent_state == "finished"
    assert "here I am" not in await answered()
    async with session.hold_lease():
        assert await answered() == "here I am"
        state = await session.run("go")
        assert state.agent_state == "finished"
        assert await answered() == "here I am"
    assert decisions(await log.read()) == [("example.org", True)] * 2
    assert sum(isinstance(event, SessionStarted) for event in await log.read()) == 1


async def test_what_reaches_the_network_is_asked_about_where_risks_are(office: Office) -> None:
    log = await office.bench.log()
    await log.append(NetworkAllowed(hosts=("example.org",), source="user"))
    session = await office.session(bash("touch a"), log=log, confirmation="risky")
    state = await session.run("go")
    assert state.agent_state == "awaiting_user_confirmation"
    asked = [event.content for event in office.bench.events if isinstance(event, AgentStateChangedObservation)]
    assert asked == ["It can send data to the network: the sandbox may reach example.org."]


async def test_where_nobody_runs_the_session_nothing_can_be_kept_and_nothing_leaves(bench: Bench) -> None:
    log = await bench.log()
    egress = recorded_egress(log, list[str], subtask=7)
    event = EgressEvent(host="example.org", port=443, allowed=True)
    assert not await egress.record(event)
    async with log.lease():
        assert await egress.record(event)
    (kept,) = await log.read()
    assert (kept.kind, kept.subtask, kept.source) == ("EgressEvent", 7, "environment")


async def test_a_host_that_is_allowed_once_is_refused_after_the_action_that_reaches_it(office: Office) -> None:
    bench = office.bench
    log = await bench.log()
    page = "curl -sS http://example.org/"
    session = await office.session(bash(page), bash("sleep 1"), bash(page), bash(page), finish(), log=log)

    running = asyncio.create_task(session.run("go"))
    await bench.until(CmdOutputObservation)
    assert list(session.state.totals.refused) == ["example.org"]
    await log.append(network_allowed(["example.org"], once=True))
    state = await running
    said = [event.content.strip() for event in bench.events if isinstance(event, CmdOutputObservation)]
    assert said.count("here I am") == 1
    assert "refused" in said[-1]
    assert state.totals.network == []
    assert "reach example.org once" in str(bench.llm.requests[-1])


async def test_a_host_that_is_taken_back_stays_so_in_the_next_process(office: Office) -> None:
    bench = office.bench
    log = await bench.log()
    hosts = ("example.org", "other.example.org")
    async with log.lease():
        await log.append(bench.config(allow_net=hosts).started("CodeActAgent", "scripted", "/w"))
        await log.append(
            NetworkAllowed(hosts=("third.example.org",), source="user"),
            PermissionsRevoked(hosts=("example.org", "third.example.org"), source="user"),
        )
        config = await config_of(log)
        assert config.allow_net == ("other.example.org",)
        await log.append(config.started("CodeActAgent", "scripted", "/w", resumed=True))
    session = await office.session(bash("curl -sS http://example.org/"), finish(), log=log)
    state = await session.run("go")
    assert state.totals.network == ["other.example.org"]
    assert decisions(await log.read()) == [("example.org", False)]


def test_hosts_add_up_over_the_session() -> None:
    state = State()
    for number, event in enumerate(
        [
            SessionStarted(agent="A", model="m", sandbox="bubblewrap", settings={"allow_net": ["pypi"]}),
            NetworkAllowed(hosts=("example.org", "pypi"), source="user"),
            EgressEvent(host="evil.com", port=443, allowed=False),
            SessionStarted(agent="A", model="m", sandbox="bubblewrap", settings={}, resumed=True),
        ],
        1,
    ):
        state.apply(event.with_fields(id=number))
    assert state.totals.network == ["pypi", "example.org"]
    assert not state.history
