"""Run actions in one sandbox: start it, stop interrupted actions, restart a lost sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

from pydantic import JsonValue

from handiwork.errors import BrowserError, SandboxError, WorkspaceError
from handiwork.events.action import CmdRunAction, CodeSearchAction, MCPCallAction, MCPToolsAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import MCPServerEvent, SnapshotEvent
from handiwork.sandbox.base import OnOutput, Sandbox
from handiwork.sandbox.questions import AskModel
from handiwork.session.mcp.results import look_up
from handiwork.session.mcp.servers import QUICK, MCPServers
from handiwork.session.secrets import Secrets
from handiwork.session.steps.code_search import MakeCodeSearch, no_code_search
from handiwork.session.steps.interrupt import Interrupt
from handiwork.session.steps.pending import not_run

INTERRUPTS, GRACE = 5, 2.0
"""Number of interrupts before an action is abandoned, and seconds to wait after each."""

NOT_STOPPED = "It was interrupted but could not be stopped; its output is lost."
LOST = "The sandbox was lost ({}) and has been started again; files are as they were, running programs are gone."

MakeMCP = Callable[[Callable[[], Awaitable[Sandbox]]], MCPServers | None]
"""Makes the MCP servers of a sandbox, which the argument returns once it runs; None if none are configured."""


def no_mcp(_: Callable[[], Awaitable[Sandbox]]) -> None:
    """Make no MCP servers."""


def is_export(action: Action) -> bool:
    """Return whether the action sets the environment of a devcontainer.json."""
    return isinstance(action, CmdRunAction) and action.source == "environment" and action.command.startswith("export ")


class Executor:
    """Runs actions in one sandbox, on the files of ``branch``. A failed action returns an observation.

    An action receives only the ``secrets`` that it names. ``make_mcp`` makes the connections to the session's MCP
    servers, which belong to the sandbox, ``make_search`` the search of the branch's code. ``exports`` are the commands
    that have set the environment of a devcontainer.json, which every new shell lacks.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        interrupt: Interrupt,
        branch: int = 0,
        secrets: Secrets = Secrets(),  # noqa: B008 - frozen
        make_mcp: MakeMCP = no_mcp,
        make_search: MakeCodeSearch = no_code_search,
        exports: Iterable[Action] = (),
    ) -> None:
        self.sandbox, self.branch, self.secrets, self.make_mcp = sandbox, branch, secrets, make_mcp
        self.mcp = make_mcp(self.ready)
        self.make_search, self._search = make_search, make_search(branch)
        self._interrupt = interrupt
        self._ready: asyncio.Task[None] | None = None
        self._problem = ""
        self.exports = [*exports]

    def prepare(self) -> None:
        """Start the sandbox in the background."""
        if self._ready is None:
            self._ready = asyncio.create_task(self._start())

    async def _start(self) -> None:
        await self.sandbox.start()
        for export in self.exports:  # the new shell lacks the environment
            await self.sandbox.execute(export, secrets=self.secrets.named_by(export))

    @property
    def started(self) -> bool:
        """Whether the sandbox runs, or is about to."""
        return self._ready is not None

    async def ready(self) -> Sandbox:
        """Wait until the sandbox runs and return it. Raises SandboxError."""
        self.prepare()
        assert self._ready is not None
        try:
            await asyncio.shield(self._ready)
        except SandboxError:
            self._ready = None
            raise
        return self.sandbox

    async def execute(
        self, action: Action, seconds: float | None, on_output: OnOutput, ask: AskModel | None = None
    ) -> Observation:
        """Run the action for at most ``seconds``; return its observation. Raises SandboxError if no sandbox starts.

        ``ask`` answers the questions of skills to the model.
        """
        self.prepare()
        assert self._ready is not None
        if not await self._interrupt.race(self._ready, seconds) or self._interrupt.is_set():
            return not_run()
        try:
            self._ready.result()
        except SandboxError:
            self._ready = None
            raise
        if is_export(action):
            self.exports.append(action)
        try:
            return await self._execute(action, seconds, on_output, ask)
        except SandboxError as error:
            await self.sandbox.close()
            try:
                await self._start()
            except SandboxError:
                self._ready = None
                raise
            return ErrorObservation(content=LOST.format(error), error_id="sandbox_lost")

    async def prepare_mcp(self, known: Mapping[str, MCPServerEvent], seconds: float = QUICK) -> list[MCPServerEvent]:
        """Start the MCP servers that are not ``known``, wait for them for ``seconds``; return the changes of all."""
        if self.mcp is None:
            return []
        await self._interrupt.unless_set(self.mcp.prepare(known, seconds), None)
        return self.mcp.take_events()

    async def look_up_tools(self, known: Mapping[str, MCPServerEvent], action: MCPToolsAction) -> Observation:
        """Return the tools of an MCP server that the action asks for; wait for one that still starts."""
        if self.mcp is None:
            return look_up(known, action)
        return await self._interrupt.unless_set(self.mcp.look_up(known, action), None) or not_run()

    async def inspect(self, calls: str) -> JsonValue:
        """Return the elements that browser calls would reach on the open page; None if the browser cannot tell."""
        try:
            return await (await self.ready()).browser("targets", calls=calls)
        except (BrowserError, SandboxError):
            return None

    async def snapshot(self) -> list[Event]:
        """Snapshot the session's files; return the record, or nothing if the files have not changed."""
        if self.branch:
            return []  # a child works on a copy of its own
        try:
            snapshot = await self.sandbox.snapshot()
        except (WorkspaceError, SandboxError, OSError) as error:
            last_problem, self._problem = self._problem, str(error)
            return [] if last_problem == self._problem else [SnapshotEvent(tree="", problem=self._problem)]
        if snapshot is None:
            return []
        self._problem = ""
        return [SnapshotEvent(tree=snapshot.tree, size=snapshot.size, changed=snapshot.changed)]

    async def close(self) -> None:
        """Close the sandbox and the MCP servers in it."""
        if self.mcp is not None:
            await self.mcp.close()
        if self._ready is not None:
            self._ready.cancel()
            with suppress(asyncio.CancelledError, SandboxError):
                await self._ready
        await self.sandbox.close()

    async def _execute(
        self, action: Action, seconds: float | None, on_output: OnOutput, ask: AskModel | None
    ) -> Observation:
        secrets, limited = self.secrets.named_by(action), False

        async def perform(primitive: Action) -> Observation:
            if isinstance(primitive, MCPCallAction) and self.mcp is not None:
                return await self.mcp.call(primitive)
            if isinstance(primitive, CodeSearchAction):
                return await self._interrupt.unless_set(self._search(primitive), None) or not_run()
            observation = await self.sandbox.execute(primitive, on_output, secrets, ask)
            if limited and getattr(observation, "status", "") == "interrupted":
                return observation.with_fields(status="time_limit")
            return observation

        run = asyncio.create_task(action.execute(perform))
        if await self._interrupt.race(run, seconds):
            return run.result()
        limited = not self._interrupt.is_set()
        for _ in range(INTERRUPTS):
            if self.mcp is not None:
                self.mcp.interrupt()
            await self.sandbox.interrupt()
            if await asyncio.wait({run}, timeout=GRACE) != (set(), {run}):
                return run.result()
        run.cancel()
        return ErrorObservation(content=NOT_STOPPED, error_id="interrupted")
