"""A session: one task, its log, its agent and its sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pydantic import Field, JsonValue

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.base import Model
from handiwork.events.record import Confirmation, Limits, SessionStarted
from handiwork.llm.types import LLM
from handiwork.log.blobs import Blobs
from handiwork.log.eventlog import EventLog
from handiwork.sandbox.base import Sandbox
from handiwork.session.approval.gate import Gate
from handiwork.session.approval.rules import Analyser, ExecutionContext
from handiwork.session.delegation import Branches, Delegation
from handiwork.session.loop import Loop, LoopContext, Over, never
from handiwork.session.secrets import Secrets, told
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.journal import Journal
from handiwork.session.steps.live import Observer
from handiwork.session.steps.model_switch import MakeLLM, Models
from handiwork.session.steps.pending import abandoned, crashed, not_run


class SessionConfig(Model):
    """The configuration of a session. The log keeps ``settings`` unchanged for processes that reopen the session.

    ``temperature`` is the lowest temperature of model calls; None leaves it to the agent. ``shadowed`` are the names
    of reading programs that programs of the workspace share.
    """

    limits: Limits = Limits()
    confirmation: Confirmation = "never"
    temperature: float | None = None
    in_place: bool = False
    shadowed: frozenset[str] = frozenset()
    settings: dict[str, JsonValue] = Field(default_factory=dict)


class Session:
    """One agent in one sandbox. ``run`` may be called repeatedly; the log holds all persistent state."""

    def __init__(
        self,
        log: EventLog,
        blobs: Blobs,
        agent: type[Agent],
        llm: LLM,
        sandbox: Sandbox,
        terms: SessionConfig,
        watch: Observer,
        make_llm: MakeLLM | None = None,
        branches: Branches | None = None,
        analyser: Analyser | None = None,
        secrets: Secrets = Secrets(),  # noqa: B008 - frozen
        *,
        begun: bool = False,
    ) -> None:
        """``begun``: this process has already written the session's start to the log."""
        log.redactor.learn(secrets.values)
        self._secrets, self._told = secrets, False
        self._log, self._branches, self._held = log, branches, False
        self._journal = Journal(log, watch)
        self._executor = Executor(sandbox, self._journal.interrupt, secrets=secrets)
        self._models = Models(llm, make_llm, terms.temperature)
        place = ExecutionContext(
            sandbox.name != "none", terms.in_place, frozenset(secrets.values), shadowed=terms.shadowed
        )
        gate = Gate(place, analyser)
        self._over = never
        parts = LoopContext(self._journal, self._models, gate, Delegation(blobs, branches).answer, lambda: self._over())
        self._loop = Loop(parts, 0, agent, self._executor)
        self._started: SessionStarted | None = None
        if not begun:
            self._started = SessionStarted(
                agent=agent.__name__,
                model=llm.name,
                sandbox=sandbox.name,
                workspace=sandbox.workspace,
                limits=terms.limits,
                confirmation=terms.confirmation,
                settings=terms.settings,
            )

    @property
    def state(self) -> State:
        """The session's current state."""
        return self._journal.state

    @asynccontextmanager
    async def hold_lease(self) -> AsyncGenerator[None]:
        """Hold the session's lease before, between and after runs. Raises LeaseHeld if another process holds it.

        A sandbox has network access only while a process holds its session's lease.
        """
        async with self._log.lease():
            await self._journal.catch_up()
            if self.state.last_id == 0:
                await self._begin()
            listener = asyncio.create_task(self._journal.listen())
            self._held = True
            try:
                yield
            finally:
                self._held = False
                listener.cancel()

    async def run(self, message: str | MessageAction | None = None, over: Over = never) -> State:
        """Resume from the log, with the user's message if given, until the agent finishes, waits or is paused.

        The message goes to the active delegate. ``over`` is called after every observation and may end the task
        regardless of the agent's plans. Raises LeaseHeld if another process runs the session.
        """
        if not self._held:
            async with self.hold_lease():
                return await self.run(message, over)
        self._over = over
        await self._open(message)
        self._executor.prepare()
        await self._loop.run()
        return self.state

    async def wait_until_resumed(self) -> None:
        """Wait until any process resumes the session; this process must hold the lease."""
        await self._journal.running.wait()

    async def sandbox(self) -> Sandbox:
        """Wait for the sandbox and return it, to prepare or examine it around a run. Raises SandboxError."""
        return await self._executor.ready()

    async def close(self) -> None:
        """Close the sandbox and the models' connections; remove copies that no child session needs any more."""
        await self._executor.close()
        await self._models.close()
        if self._branches is not None and self.state.last_id:  # the log tells which copies are needed
            await self._branches.keep(self.state.subtasks)

    async def _begin(self) -> None:
        await self._journal.catch_up()
        if self._started is not None:
            await self._journal.append(self._started.with_fields(resumed=self.state.last_id > 0))
            self._started = None

    async def _open(self, message: str | MessageAction | None) -> None:
        journal = self._journal
        await self._begin()
        if any(abandoned(self.state, state) for state in self.state.tree()):
            await journal.append(*await self._executor.snapshot())
        for state in self.state.tree():
            for number, action in enumerate(abandoned(self.state, state)):
                lost = crashed() if number == 0 else not_run()
                await journal.append(lost.with_fields(cause=action.id, subtask=state.id))
        if message is not None:
            said = MessageAction(content=message) if isinstance(message, str) else message
            await journal.append(said.with_fields(source="user", subtask=self.state.active))
        elif self.state.agent_state in ("paused", "error"):
            await journal.append(ChangeAgentStateAction(agent_state="running", source="user"))
        if self._secrets.values and not self._told and self.state.agent_state == "running":
            # Every process tells the agent once: its secrets may differ from those of the previous process.
            self._told = True
            await journal.append(MessageAction(content=told(self._secrets), source="environment"))
