"""A session that another process runs, like the server: watched and steered through its log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from handiwork.agents.state import State
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.record import SettingsChanged
from handiwork.log.eventlog import EventLog
from handiwork.session.config import SessionConfig, config_of
from handiwork.session.steps.live import Observer
from handiwork.session.user_events import network_allowed, running_commands
from handiwork.settings import SettingsError
from handiwork.tasks import run_until_one_ends

ALONE = 15.0
"""Seconds to wait for a session that no process runs any more: a server may restart."""


class RemoteSession:
    """The part of ``Session`` that the dialog uses for a session of another process; ``watch`` gets each event."""

    def __init__(self, log: EventLog, config: SessionConfig, watch: Observer) -> None:
        self.log, self.config = log, config
        self.state = State()
        self._watch = watch

    @property
    def id(self) -> str:
        """The session's id."""
        return self.log.id

    @asynccontextmanager
    async def hold_lease(self) -> AsyncGenerator[None]:
        """Do nothing: another process holds the lease."""
        yield

    async def run(self, message: str | None = None) -> State:
        """Send the message, or resume a paused session, and watch until the session stops running."""
        await self._catch_up()
        if message is not None:
            await self.log.append(MessageAction(content=message, source="user", subtask=self.state.active))
        elif self.state.agent_state in ("paused", "error"):
            await self.log.append(ChangeAgentStateAction(agent_state="running", source="user"))
        await self._catch_up()
        await run_until_one_ends(self._reach(running=False), self._until_alone())
        return self.state

    async def wait_until_resumed(self) -> None:
        """Wait until any process resumes the session, even if none runs it meanwhile."""
        await self._reach(running=True)

    async def change(self, changes: Mapping[str, Any]) -> None:
        """Change the session's model, limits, confirmation mode or allowed hosts.

        Raises SettingsError for changes that only the session's own process could take.
        """
        if changes.get("secrets", self.config.secrets) != self.config.secrets:
            raise SettingsError(f"another process runs session {self.id} and cannot take a secret: stop it first")
        if hosts := changes.get("allow_net"):
            if await running_commands(self.log):
                raise SettingsError(f"session {self.id} has running commands: allow the hosts with `handiwork allow`")
            await self.log.append(network_allowed(hosts))
        others = {key: changes[key] for key in ("model", "base_url", "limits", "confirmation") if key in changes}
        if others.get("limits") == self.config.limits:
            del others["limits"]
        if others:
            await self.log.append(SettingsChanged(**others, source="user"))

    async def _reach(self, running: bool) -> None:
        async for _ in self.log.heads():
            await self._catch_up()
            if (self.state.agent_state == "running") == running:
                return

    async def _until_alone(self) -> None:
        """Return once no process has run the session for ALONE seconds."""
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(ALONE):
                    while True:
                        await asyncio.sleep(0.5)
                        if await self.log.holder() is not None:
                            break

    async def _catch_up(self) -> None:
        for event in await self.log.read(after=self.state.last_id):
            self.state.apply(event)
            self._watch(event)


async def open_remote(log: EventLog, watch: Observer, changes: Mapping[str, Any]) -> RemoteSession:
    """Return a session that another process runs, after changing its settings. Raises SettingsError."""
    session = RemoteSession(log, await config_of(log), watch)
    await session.change(changes)
    return session
