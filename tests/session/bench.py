"""Sessions with scripted models, and the replies to script them with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from handiwork.agents.base import Agent
from handiwork.agents.codeact import CodeActAgent
from handiwork.events.base import Event
from handiwork.events.record import Confirmation, Limits, ProtocolName
from handiwork.llm.errors import LLMError
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import LLM, Capabilities
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.host import HostSandbox
from handiwork.session.config import SessionConfig
from handiwork.session.session import Session


def call(name: str, content: str = "", **arguments: Any) -> Reply:
    """A reply with one tool call."""
    return calls((name, arguments), content=content)


def calls(*given: tuple[str, Any], content: str = "", **rest: Any) -> Reply:
    """A reply with several tool calls; arguments may be a string to be broken."""
    return Reply.model_validate(
        {"content": content, "tool_calls": [{"name": n, "arguments": a} for n, a in given], **rest}
    )


def bash(command: str, **rest: Any) -> Reply:
    return calls(("bash", {"command": command}), **rest)


def finish(message: str = "done") -> Reply:
    return call("finish", message=message)


class Bench:
    """One data folder and workspace, on which sessions with scripted models are made."""

    def __init__(self, store: Store, workspace: Path, stack: AsyncExitStack) -> None:
        self.store, self.workspace, self._stack = store, workspace, stack
        self.watched: list[Any] = []
        self.llm = ScriptedLLM([])
        self.models: dict[str, ScriptedLLM] = {}

    async def log(self) -> EventLog:
        return await self.store.create(agent="CodeActAgent", model="scripted", title="a test")

    def config(self, sandbox: str = "none", **fields: Any) -> SessionConfig:
        """The configuration of a session on this machine."""
        workspace = str(self.workspace)
        return SessionConfig(agent="CodeActAgent", model="scripted", sandbox=sandbox, workspace=workspace, **fields)

    async def session(
        self,
        replies: Iterable[Reply | str],
        log: EventLog | None = None,
        agent: type[Agent] = CodeActAgent,
        watch: Callable[[Any], None] | None = None,
        capabilities: Capabilities = Capabilities(),
        sandbox: Sandbox | None = None,
        llm: LLM | None = None,
        confirmation: Confirmation = "never",
        protocol: ProtocolName = "auto",
        **limits: Any,
    ) -> Session:
        self.llm = ScriptedLLM(replies, capabilities=capabilities)
        sandbox = sandbox or HostSandbox(self.workspace, self.store.blobs.put)
        log = log or await self.log()
        config = self.config(sandbox.name, limits=Limits(**limits), confirmation=confirmation, protocol=protocol)
        watch = watch or self.watched.append
        session = Session(log, self.store, config, agent, llm or self.llm, sandbox, watch, self._llm_of)
        self._stack.push_async_callback(session.close)
        return session

    def _llm_of(self, model: str, base_url: str | None) -> ScriptedLLM:
        if model not in self.models:
            raise LLMError(f"there is no model {model}")
        return self.models[model]

    async def until(self, seen: type) -> None:
        """Wait until the session has shown something of this type."""
        async with asyncio.timeout(20):
            while not any(isinstance(event, seen) for event in self.watched):
                await asyncio.sleep(0.01)

    @property
    def events(self) -> list[Event]:
        return [event for event in self.watched if isinstance(event, Event)]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]
