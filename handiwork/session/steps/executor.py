"""Run actions in one sandbox: start it, stop interrupted actions, restart a lost sandbox."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pydantic import JsonValue

from handiwork.errors import BrowserError, SandboxError, WorkspaceError
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import SnapshotEvent
from handiwork.sandbox.base import OnOutput, Sandbox
from handiwork.session.secrets import Secrets
from handiwork.session.steps.interrupt import Interrupt
from handiwork.session.steps.pending import not_run

INTERRUPTS, GRACE = 5, 2.0
"""Number of interrupts before an action is abandoned, and seconds to wait after each."""

NOT_STOPPED = "It was interrupted but could not be stopped; its output is lost."
LOST = "The sandbox was lost ({}) and has been started again; files are as they were, running programs are gone."


class Executor:
    """Runs actions in one sandbox, on the files of ``branch``. A failed action returns an observation.

    An action receives only the ``secrets`` that it names.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        interrupt: Interrupt,
        branch: int = 0,
        secrets: Secrets = Secrets(),  # noqa: B008 - frozen
    ) -> None:
        self.sandbox, self.branch, self.secrets = sandbox, branch, secrets
        self._interrupt = interrupt
        self._ready: asyncio.Task[None] | None = None
        self._problem = ""

    def prepare(self) -> None:
        """Start the sandbox in the background."""
        if self._ready is None:
            self._ready = asyncio.create_task(self.sandbox.start())

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

    async def execute(self, action: Action, seconds: float | None, on_output: OnOutput) -> Observation:
        """Run the action for at most ``seconds``; return its observation. Raises SandboxError if no sandbox starts."""
        self.prepare()
        assert self._ready is not None
        if not await self._interrupt.race(self._ready, seconds) or self._interrupt.is_set():
            return not_run()
        try:
            self._ready.result()
        except SandboxError:
            self._ready = None
            raise
        try:
            return await self._execute(action, seconds, on_output)
        except SandboxError as error:
            await self.sandbox.close()
            try:
                await self.sandbox.start()
            except SandboxError:
                self._ready = None
                raise
            return ErrorObservation(content=LOST.format(error), error_id="sandbox_lost")

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
        """Close the sandbox."""
        if self._ready is not None:
            self._ready.cancel()
            with suppress(asyncio.CancelledError, SandboxError):
                await self._ready
        await self.sandbox.close()

    async def _execute(self, action: Action, seconds: float | None, on_output: OnOutput) -> Observation:
        secrets = self.secrets.named_by(action)
        run = asyncio.create_task(action.execute(lambda primitive: self.sandbox.execute(primitive, on_output, secrets)))
        if await self._interrupt.race(run, seconds):
            return run.result()
        for _ in range(INTERRUPTS):
            await self.sandbox.interrupt()
            if await asyncio.wait({run}, timeout=GRACE) != (set(), {run}):
                return run.result()
        run.cancel()
        return ErrorObservation(content=NOT_STOPPED, error_id="interrupted")
