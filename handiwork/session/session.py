"""A session: one task, its log, its agent and its sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from handiwork.agents.base import Agent
from handiwork.agents.micro.catalog import MicroCatalog
from handiwork.agents.state import State
from handiwork.errors import HandiworkError
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.record import ContextWithheld, MCPServerEvent, SettingsChanged
from handiwork.llm.types import LLM
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.create import is_isolated
from handiwork.session.approval.gate import Gate
from handiwork.session.approval.rules import ExecutionContext
from handiwork.session.config import SessionConfig, with_changes
from handiwork.session.conventions import Conventions
from handiwork.session.delegation import Branches, Delegation
from handiwork.session.hooks.runner import Hooks
from handiwork.session.loop import Loop, LoopContext
from handiwork.session.mcp.connection import START
from handiwork.session.policies.knowledge import Knowledge
from handiwork.session.policies.rate_limit import RateLimit
from handiwork.session.secrets import Secrets, announcement
from handiwork.session.steps.code_search import MakeCodeSearch, no_code_search
from handiwork.session.steps.executor import Executor, MakeMCP, no_mcp
from handiwork.session.steps.journal import Journal
from handiwork.session.steps.live import Observer
from handiwork.session.steps.model_switch import MakeLLM, Models
from handiwork.session.steps.pending import Over, abandoned_actions, crashed, never, not_run
from handiwork.session.storage.code_memory import CodeMemory
from handiwork.session.storage.gc import make_room
from handiwork.session.storage.layout import session_dir, snapshots_in_use
from handiwork.workspace.patch import diffstat
from handiwork.workspace.session_files import SessionFiles

COUNTED_CHANGES = 1000
"""The most changed files whose lines are counted for the list of sessions."""


class Session:
    """One agent in one sandbox. ``run`` may be called repeatedly; the log holds all persistent state."""

    def __init__(
        self,
        log: EventLog,
        store: Store,
        config: SessionConfig,
        agent: type[Agent],
        llm: LLM,
        sandbox: Sandbox,
        watch: Observer,
        make_llm: MakeLLM | None = None,
        branches: Branches | None = None,
        secrets: Secrets = Secrets(),  # noqa: B008 - frozen
        shadowed: frozenset[str] = frozenset(),
        catalog: MicroCatalog | None = None,
        make_mcp: MakeMCP = no_mcp,
        make_search: MakeCodeSearch = no_code_search,
        *,
        conventions: Conventions | None = None,
        started: bool = False,
        read_at: int | None = None,
    ) -> None:
        """``shadowed`` are the names of reading programs that programs of the workspace share.

        ``catalog`` has the micro agents that the agent may delegate to, by default those of the user and of packages,
        and the knowledge that joins the conversation. ``make_mcp`` makes a sandbox's connections to the MCP servers,
        ``make_search`` the search of a branch's code.
        Without ``conventions``, nothing of the project, the user and earlier tasks joins the prompts.

        ``started``: this process has already written the session's start to the log. ``read_at`` is the last event that
        the log had when ``config`` was read from it: later changes of the user join it when the session begins.
        """
        log.redactor.learn(secrets.values)
        self.log, self.config = log, config
        self._store, self._watch, self._branches = store, watch, branches
        self._secrets, self._secrets_announced, self._holds_lease = secrets, False, False
        self._conventions, self._conventions_read = conventions, False
        knowledge = Knowledge([*catalog.knowledge.values()] if catalog else ())
        self._journal = Journal(log, watch, self._companions, knowledge)
        self._executor = Executor(
            sandbox, self._journal.interrupt, secrets=secrets, make_mcp=make_mcp, make_search=make_search
        )
        rate_limit = RateLimit(config.requests_per_minute, config.tokens_per_minute)
        self._models = Models(llm, make_llm, config.temperature, config.protocol, rate_limit, config.base_url)
        isolated, names = is_isolated(config.sandbox), frozenset(secrets.values)
        gate = Gate(ExecutionContext(isolated, config.in_place, names, shadowed=shadowed))
        self._over = never
        memory = CodeMemory(store.folder, config.workspace, log.redactor.text) if conventions is not None else None
        self._delegation = Delegation(store.blobs, branches, catalog, memory)
        self._hooks = Hooks(self._journal, config.hooks, config.workspace)
        context = LoopContext(
            self._journal, self._models, gate, self._delegation.answer, self._hooks, lambda: self._over()
        )
        self._loop = Loop(context, 0, agent, self._executor)
        self._start_event = None if started else config.started(agent.__name__, llm.name, sandbox.workspace)
        self._read_at = read_at
        self._collection: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        """The session's id."""
        return self.log.id

    @property
    def state(self) -> State:
        """The session's current state."""
        return self._journal.state

    @property
    def files(self) -> SessionFiles:
        """The session's files on this machine."""
        return self.config.files(session_dir(self._store.folder, self.id))

    @asynccontextmanager
    async def hold_lease(self) -> AsyncGenerator[None]:
        """Keep the session for this process before, between and after runs, and close it before the lease ends.

        Raises LeaseHeld if another process holds the lease. A sandbox has network access only while a process does.
        """
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._lease())
            except BaseException:
                await self.close()
                raise
            stack.push_async_callback(self.close)
            yield

    @asynccontextmanager
    async def _lease(self) -> AsyncGenerator[None]:
        async with self.log.lease():
            await self._journal.catch_up()
            if self.state.last_id == 0:
                await self._begin()
            if self._collection is None:
                collection = make_room(self._store, self._store.folder, self.config.snapshots, self._watch)
                self._collection = asyncio.create_task(collection)
            listener = asyncio.create_task(self._journal.listen())
            self._holds_lease = True
            try:
                yield
            finally:
                self._holds_lease = False
                listener.cancel()

    async def run(self, message: str | MessageAction | None = None, over: Over = never) -> State:
        """Resume from the log, with the user's message if given, until the agent finishes, waits or is paused.

        The message goes to the active delegate. ``over`` is called after every observation and may end the task
        regardless of the agent's plans. The store keeps the state for lists of sessions. Raises LeaseHeld if another
        process runs the session.
        """
        if not self._holds_lease:
            async with self._lease():
                return await self.run(message, over)
        self._over, interrupted = over, self.state.totals.interrupted
        using = snapshots_in_use(self._store.folder)
        await asyncio.to_thread(using.__enter__)
        try:
            await self._store.update(self.id, state="running")
            try:
                await self._open(message, interrupted)
                self._executor.prepare()
                await self._hooks.start(self._executor)
                await self._loop.run()
                await self._hooks.end(self._executor)
            finally:
                await self._store.update(self.id, state=self.state.agent_state, spent=self.state.cost)
            await self._store.update(self.id, lines=await self._changed_lines())
        finally:
            using.__exit__(None, None, None)
        return self.state

    async def _changed_lines(self) -> tuple[int, int] | None:
        """Return the numbers of added and deleted lines; None if the changes are too many to count, or unreadable."""
        try:
            changes = await asyncio.to_thread(self.files.changes)
            if len(changes) > COUNTED_CHANGES:
                return None
            counts = await asyncio.to_thread(diffstat, changes)
        except (HandiworkError, OSError):
            return None
        return sum(added for _, added, _ in counts), sum(deleted for _, _, deleted in counts)

    async def events(self, first: int = 1, last: int | None = None) -> list[Event]:
        """Return the session's events ``first`` to ``last``, of this run and of earlier ones; None is the end."""
        limit = None if last is None else max(0, last - max(first, 1) + 1)
        return await self.log.read(after=max(first, 1) - 1, limit=limit)

    async def wait_until_resumed(self) -> None:
        """Wait until any process resumes the session; this process must hold the lease."""
        await self._journal.running.wait()

    @property
    def has_sandbox(self) -> bool:
        """Whether the sandbox runs, or is about to."""
        return self._executor.started

    async def sandbox(self) -> Sandbox:
        """Wait for the sandbox and return it, to prepare or examine it around a run. Raises SandboxError."""
        return await self._executor.ready()

    async def start_mcp(self) -> list[MCPServerEvent]:
        """Start all MCP servers and wait until each has answered or failed; return their states as the log has them."""
        await self._executor.ready()
        events = await self._executor.prepare_mcp(self.state.totals.mcp, START)
        return [event for event in await self._journal.append(*events) if isinstance(event, MCPServerEvent)]

    async def close(self) -> None:
        """Close the sandbox and the models' connections; remove copies that no child session needs."""
        await self._delegation.close()
        await self._executor.close()
        await self._models.close()
        if self._branches is not None and self.state.last_id:  # the log tells which copies are needed
            await self._branches.keep(self.state.subtasks)
        if self._collection is not None:
            await self._collection

    async def _companions(self, events: Sequence[Event]) -> list[Event]:
        if self._conventions is None:
            return []
        try:
            return await self._conventions.joining(events, self.state.totals)
        except HandiworkError as error:  # the events themselves must reach the log
            return [ContextWithheld(paths=(), content=f"conventions of this folder are not loaded: {error}")]

    async def _begin(self) -> None:
        await self._journal.catch_up()
        if (start := self._start_event) is not None:
            if self._read_at is not None:
                config = with_changes(self.config, await self.log.read(after=self._read_at))
                model = start.model if config.model == self.config.model else config.model
                start = start.with_fields(
                    model=model,
                    limits=config.limits,
                    confirmation=config.confirmation,
                    settings=config.model_dump(mode="json"),
                )
            await self._journal.append(start.with_fields(resumed=self.state.last_id > 0))
            self._start_event = None

    async def _open(self, message: str | MessageAction | None, interrupted: int) -> None:
        """Prepare a run; ``interrupted`` is the user's last interrupt before it: a later one is not undone."""
        journal = self._journal
        await self._begin()
        if any(abandoned_actions(self.state, state) for state in self.state.tree()):
            await journal.append(*await self._executor.snapshot())
        for state in self.state.tree():
            for number, action in enumerate(abandoned_actions(self.state, state)):
                lost = crashed() if number == 0 else not_run()
                await journal.append(lost.with_fields(cause=action.id, subtask=state.id))
        if self._conventions is not None and not self._conventions_read:
            # Every process reads them once: the user may have accepted more since the previous one.
            self._conventions_read = True
            if events := await self._conventions.at_begin(self.state.totals):
                await journal.append(*events)
        if message is not None:
            user_message = MessageAction(content=message) if isinstance(message, str) else message
            await journal.append(user_message.with_fields(source="user", subtask=self.state.active))
        elif self.state.agent_state in ("paused", "error") and self.state.totals.interrupted == interrupted:
            await journal.append(ChangeAgentStateAction(agent_state="running", source="user"))
        if self.config.plan_mode and self.state.totals.plan_mode is None:
            await journal.append(SettingsChanged(plan_mode=True, source="user"))
        if self._secrets.values and not self._secrets_announced and self.state.agent_state == "running":
            # Every process tells the agent once: its secrets may differ from those of the previous process.
            self._secrets_announced = True
            await journal.append(MessageAction(content=announcement(self._secrets), source="environment"))
        # In plan mode the commands would be refused: they run once the plan is accepted.
        acts = self.state.agent_state == "running" and not self.state.totals.plan_mode
        if self._conventions and acts and (events := await self._conventions.setup(self.state.totals)):
            await journal.append(*(event.with_fields(subtask=self.state.active) for event in events))
