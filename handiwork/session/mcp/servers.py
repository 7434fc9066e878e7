"""All MCP servers of one sandbox: they start in parallel, and the agent does not wait long for a slow one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from handiwork.events.action import MCPCallAction, MCPToolsAction
from handiwork.events.base import Observation
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import MCPServerEvent
from handiwork.sandbox.base import Sandbox
from handiwork.session.mcp.connection import Connection, MCPOptions
from handiwork.session.mcp.results import look_up
from handiwork.settings import MCPServerSettings

QUICK = 3.0
"""Seconds for which a step waits for servers that start; the tools of a slower one join a later step."""


class MCPServers:
    """The servers of the user's settings, for the agents that work in one sandbox.

    All start together before the first step of an agent that uses them, but for those whose tools the log already has:
    they start with their first call. ``sandbox`` returns the sandbox once it runs, ``say`` shows why a step waits.
    """

    def __init__(
        self,
        settings: Mapping[str, MCPServerSettings],
        options: MCPOptions,
        sandbox: Callable[[], Awaitable[Sandbox]],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._say = say
        self._events: list[MCPServerEvent] = []
        self._newest: dict[str, MCPServerEvent] = {}
        self._known: dict[str, MCPServerEvent] = {}
        self._down: set[str] = set()
        self._prepared = False
        self._connections = {
            name: Connection(name, server, options, sandbox, self._report) for name, server in settings.items()
        }

    async def prepare(self, known: Mapping[str, MCPServerEvent], seconds: float = QUICK) -> None:
        """Start the servers whose tools are not ``known`` and wait for them for ``seconds``; later calls no-op."""
        self._known = dict(known)
        if self._prepared:
            return
        self._prepared = True
        new = [
            connection
            for name, connection in self._connections.items()
            if name not in known or known[name].state != "ready"
        ]
        if starting := [connection.start() for connection in new]:
            self._say(f"starting MCP servers: {', '.join(connection.name for connection in new)}")
            await asyncio.wait(starting, timeout=seconds)
            self._events += [
                MCPServerEvent(server=connection.name, state="starting")
                for connection, client in zip(new, starting, strict=True)
                if not client.done()
            ]
            # The order of the settings, not of arrival: sessions with the same servers have the same prompt.
            order = list(self._connections)
            self._events.sort(key=lambda event: order.index(event.server))

    def take_events(self) -> list[MCPServerEvent]:
        """Return the changes since the last call; a start of which the log knows already is none."""
        events: list[MCPServerEvent] = []
        for event in self._events:
            known = self._known.get(event.server)
            if event.state == "ready":
                if event.server in self._down or known is None or known.tools != event.tools:
                    events.append(event)
                    self._known[event.server] = event
                self._down.discard(event.server)
            else:
                self._down.add(event.server)
                events.append(event)
        self._events.clear()
        return events

    async def look_up(self, known: Mapping[str, MCPServerEvent], action: MCPToolsAction) -> Observation:
        """Return the tools that the action asks for: those ``known``, or those of a server that still starts."""
        connection, server = self._connections.get(action.server), known.get(action.server)
        if connection is not None and (server is None or not server.tools):
            await asyncio.wait([connection.start()])
        return look_up({**known, **self._newest}, action)

    async def call(self, action: MCPCallAction) -> Observation:
        """Call a tool, and start its server if it does not run. Raises SandboxError."""
        connection = self._connections.get(action.server)
        if connection is None:
            text = f"There is no MCP server {action.server!r}. There are: {', '.join(self._connections)}."
            return ErrorObservation(content=text, error_id="no_server")
        return await connection.call(action)

    def _report(self, event: MCPServerEvent) -> None:
        self._events.append(event)
        if event.state == "ready" or event.server not in self._newest:
            self._newest[event.server] = event

    def interrupt(self) -> None:
        """Cancel the calls that run."""
        for connection in self._connections.values():
            connection.interrupt()

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))
