"""Run several attempts at one task, from the same files and under one budget, and rank them.

The first session only has a snapshot of the files. Each attempt is a fork of it, so that the attempts share their
common files, and each can be shown, applied or resumed like any other session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from handiwork.agents.state import State
from handiwork.errors import SandboxError, WorkspaceError
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import AgentStateChangedObservation, CmdOutputObservation
from handiwork.events.record import Limits
from handiwork.llm.create import create as create_llm
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.sandbox.base import Sandbox
from handiwork.session.config import SessionConfig, SessionError, title_of
from handiwork.session.open import changes, create, reopen, sandbox_of
from handiwork.session.session import Session
from handiwork.session.steps.live import OutputDelta, Status, TextDelta
from handiwork.session.storage.branches import copy_tree
from handiwork.session.storage.layout import session_dir
from handiwork.session.time_travel.fork import begin, fork
from handiwork.workspace.apply import apply
from handiwork.workspace.changes import Change
from handiwork.workspace.copy import Workspace
from handiwork.workspace.patch import diffstat
from handiwork.workspace.snapshots.object_store import remove_tree

AT_ONCE = 4
"""The number of parallel attempts; attempts with a local model run one by one."""

TEST_SECONDS = 600.0
"""Timeout of the test command; the test fails when it expires."""


@dataclass(frozen=True)
class BestOfRequest:
    """A request for ``number`` attempts at ``task``, with the ``models`` in turn, judged by the command ``test``.

    Each attempt runs with ``config``. Its limit of steps applies to each attempt, the other limits to all together.
    """

    task: str
    test: str
    number: int
    models: Sequence[tuple[str, str | None]]
    config: SessionConfig


@dataclass(frozen=True)
class Attempt:
    """A finished attempt: its final state, the number of ``lines`` added and deleted, and its test's result.

    If the test could not run, ``exit_code`` is None and ``output`` the reason.
    """

    session: str
    model: str
    state: State
    lines: int
    exit_code: int | None
    output: str

    @property
    def passed(self) -> bool:
        """Whether the test command succeeded on the attempt's files."""
        return self.exit_code == 0


@dataclass(frozen=True)
class Progress:
    """Progress of attempt ``number``, counted from 1: an ``event``, or the start of a phase."""

    number: int
    phase: Literal["working", "testing", "done"]
    event: Event | None = None
    attempt: Attempt | None = None


OnProgress = Callable[[Progress], None]


async def run_attempts(
    store: Store, data: Path, request: BestOfRequest, on_progress: OnProgress
) -> tuple[str, list[Attempt]]:
    """Run the attempts; return the id of the session they fork, and the attempts, best first.

    Attempts that pass the test come first, those whose test could not run last; of equal ones, those with fewer changed
    lines come first. Raises like ``create``.
    """
    config = request.config
    if config.files(data).history is None:
        raise SessionError("attempts need copies of the files: work in a sandbox, and not in place")
    for model, base_url in request.models:
        create_llm(model, base_url)  # an attempt that cannot begin would end the others
    session = await create(store, data, config, lambda _: None, title_of(request.task))
    try:
        await begin(data, session)
    finally:
        await session.close()
    budget, turns = _SharedBudget(config.limits, request.number), asyncio.Semaphore(_parallelism(request))
    runs = [_AttemptRun(store, data, request, session.log, budget, number, on_progress) for number in _numbers(request)]

    async def run(attempt: _AttemptRun) -> Attempt:
        async with turns:
            return await attempt.run()

    tasks = [asyncio.create_task(run(attempt)) for attempt in runs]
    try:
        finished = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    attempts = sorted(finished, key=lambda one: (not one.passed, one.exit_code is None, one.lines))
    await _conclude(store, session.log, request, attempts)
    return session.id, attempts


def _numbers(request: BestOfRequest) -> range:
    return range(1, request.number + 1)


def _parallelism(request: BestOfRequest) -> int:
    return 1 if any(model.startswith("local:") for model, _ in request.models) else AT_ONCE


class _SharedBudget:
    """The budget of all attempts together: each gets an equal share of the rest when it starts."""

    def __init__(self, limits: Limits, number: int) -> None:
        self._limits, self._waiting = limits, number
        self._remaining = {
            name: float(value) for name in ("cost", "tokens", "time") if (value := getattr(limits, name))
        }

    def share(self) -> Limits | None:
        """Return the limits of the next attempt; None if the budget is used up."""
        shares = {name: amount / self._waiting for name, amount in self._remaining.items()}
        self._waiting -= 1
        if any(share <= 0 or (name == "tokens" and share < 1) for name, share in shares.items()):
            return None
        for name, share in shares.items():
            self._remaining[name] -= share
        return self._limits.model_copy(
            update={**shares, **({"tokens": int(shares["tokens"])} if "tokens" in shares else {})}
        )

    def give_back(self, share: Limits, state: State) -> None:
        """Return an attempt's unspent share to the budget."""
        spent = {"cost": state.cost, "tokens": state.usage.total, "time": state.time}
        for name in self._remaining:
            self._remaining[name] += getattr(share, name) - spent[name]


class _AttemptRun:
    """One running attempt."""

    def __init__(
        self,
        store: Store,
        data: Path,
        request: BestOfRequest,
        origin: EventLog,
        budget: _SharedBudget,
        number: int,
        on_progress: OnProgress,
    ) -> None:
        self._store, self._data, self._request, self._origin = store, data, request, origin
        self._budget, self._number, self._on_progress = budget, number, on_progress

    async def run(self) -> Attempt:
        """Run the agent on the task, then run the test on the resulting files."""
        request = self._request
        model, base_url = request.models[(self._number - 1) % len(request.models)]
        share = self._budget.share()
        limits = request.config.limits if share is None else share
        head = await self._origin.head()
        task = None if share is None else request.task
        settings: dict[str, Any] = {"model": model, "base_url": base_url, "limits": limits}
        log = await fork(self._store, self._data, self._origin, head, "both", task, **settings)
        if share is None:
            return self._report_done(
                Attempt(log.id, model, State(), 0, None, "the other attempts have used up the budget")
            )
        session = await reopen(self._store, self._data, log.id, self._watch)
        self._on_progress(Progress(self._number, "working"))
        try:
            state = await session.run()
        finally:
            await session.close()
            self._budget.give_back(share, session.state)
        self._on_progress(Progress(self._number, "testing"))
        try:
            changed = await changes(self._data, log)
            lines = sum(added + deleted for _, added, deleted in diffstat(changed))
        except WorkspaceError as error:
            problem = f"its changes cannot be read: {error}"
            return self._report_done(Attempt(log.id, model, state, 0, None, problem))
        exit_code, output = await self._run_test(session, changed)
        return self._report_done(Attempt(log.id, model, state, lines, exit_code, output))

    def _watch(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        if isinstance(item, Event):
            self._on_progress(Progress(self._number, "working", item))

    def _report_done(self, attempt: Attempt) -> Attempt:
        self._on_progress(Progress(self._number, "done", attempt=attempt))
        return attempt

    async def _run_test(self, session: Session, changed: Sequence[Change]) -> tuple[int | None, str]:
        """Run the test on the user's files with the attempt's changes, and without its other leftovers."""
        session_folder = session_dir(self._data, session.id)
        folder = session_folder / "tested"
        sandbox: Sandbox | None = None
        try:
            await asyncio.to_thread(_lay_out, session_folder, folder, changed)
            sandbox = sandbox_of(self._store, session.config.files(folder), session.config, snapshots=False)
            await sandbox.start()
            observation = await sandbox.execute(CmdRunAction(command=self._request.test, timeout=TEST_SECONDS))
        except (SandboxError, WorkspaceError) as error:
            return None, f"the test could not be run: {error}"
        finally:
            if sandbox is not None:
                await sandbox.close()
            if folder.exists():
                await asyncio.to_thread(remove_tree, folder)
        if not isinstance(observation, CmdOutputObservation):
            return None, observation.content
        text = observation.content + observation.tail
        return (observation.exit_code if observation.status in ("done", "exited") else None), text


def _lay_out(session: Path, folder: Path, changed: Sequence[Change]) -> None:
    """Create a session folder whose base is the base of ``session`` with the changes applied."""
    workspace = Workspace.load(session)
    folder.mkdir(mode=0o700)
    copy_tree(Path(workspace.base.name), folder, workspace.base.parent)
    apply(changed, folder / "base")
    replace(workspace, base=folder / "base", tree="").save(folder)


async def _conclude(store: Store, log: EventLog, request: BestOfRequest, attempts: Sequence[Attempt]) -> None:
    """Append the attempts' result to the session that they fork."""
    best, passed = attempts[0], sum(attempt.passed for attempt in attempts)
    result = f"{passed} of {len(attempts)} attempts pass `{request.test}`"
    if passed:
        result += f"; the best is session {best.session}, {best.lines} changed lines"
    end = AgentStateChangedObservation(agent_state="stopped", reason="agent", content=result)
    async with log.lease():
        await log.append(end)
    await store.update(log.id, state="stopped")
