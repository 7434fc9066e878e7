"""Sessions with MCP servers and scripted models, made as the program makes them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from handiwork.events.action import MessageAction
from handiwork.events.base import Event
from handiwork.events.record import MCPServerEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from handiwork.session.session import Session
from handiwork.settings import load
from tests.session.bench import call

SMALL = Path(__file__).with_name("small_server.py")

E = TypeVar("E", bound=Event)


def small(*options: str, **fields: Any) -> dict[str, Any]:
    """The settings of a small server."""
    return {"command": sys.executable, "args": ["-I", str(SMALL), *options], **fields}


def mcp_call(server: str, tool: str, **arguments: Any) -> Reply:
    return call("mcp_call", server=server, tool=tool, arguments=arguments)


class Sessions:
    """Makes sessions in one data folder; ``events`` are those of the newest."""

    def __init__(self, folder: Path, store: Store, stack: AsyncExitStack) -> None:
        self.data, self.workspace = folder / "data", folder / "workspace"
        self.workspace.mkdir()
        self.store, self._stack = store, stack
        self.events: list[Event] = []
        self.llm = ScriptedLLM([])

    def watch(self, item: Any) -> None:
        if isinstance(item, Event):
            self.events.append(item)

    async def open(
        self,
        servers: dict[str, Any],
        replies: Iterable[Reply | str],
        *,
        capabilities: Capabilities = Capabilities(),
        **settings: Any,
    ) -> Session:
        self.events.clear()
        self.llm = ScriptedLLM(replies, capabilities=capabilities)
        flags = {"sandbox": "none", "model": "scripted:none", "mcp": servers, **settings}
        config = SessionConfig.of(load(flags), self.workspace)
        task = MessageAction(content="the task")
        session = await create(self.store, self.data, config, self.watch, "test", task, llm=self.llm)
        self._stack.push_async_callback(session.close)
        return session

    async def run(self, servers: dict[str, Any], replies: Iterable[Reply | str], **settings: Any) -> None:
        """Run a session to its end."""
        session = await self.open(servers, replies, **settings)
        async with session.hold_lease():
            await session.run()

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def changes(self) -> list[MCPServerEvent]:
        """The changes of servers, but that one still starts: on a slow machine any may."""
        return [event for event in self.all(MCPServerEvent) if event.state != "starting"]
