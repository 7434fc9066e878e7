"""Run several attempts at one task, from the same files and under one budget, and rank them.

The session that is made first only has the beginning: the files, as a snapshot. Each candidate is a fork of it, so
that they share what they have in common, and each can be shown, applied or gone on with like any other session.
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
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.sandbox.base import Sandbox
from handiwork.session.config import SessionConfig, SessionError
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
"""Candidates that are at work at the same time; those with a model on this machine take turns."""

TEST_SECONDS = 600.0
"""Timeout of the test command, after which it has failed."""

TITLE = 100


@dataclass(frozen=True)
class BestOfRequest:
    """What is asked for: ``number`` candidates for ``task``, with the ``models`` in turn, judged by ``test``.

    ``setup`` is what each is run with. Its limit of steps is for each, the others are for all together.
    """

    task: str
    test: str
    number: int
    models: Sequence[tuple[str, str | None]]
    config: SessionConfig


@dataclass(frozen=True)
class Candidate:
    """One attempt: how it ended, whether the test ``passed``, ``lines`` added and deleted.

    ``exit_code`` and ``output`` are the test's; where it could not be run, they are None and why.
    """

    session: str
    model: str
    state: State
    lines: int
    exit_code: int | None
    output: str

    @property
    def passed(self) -> bool:
        """Whether the test command succeeded on its files."""
        return self.exit_code == 0


@dataclass(frozen=True)
class Progress:
    """What candidate ``number``, from 1 on, is doing now: its ``event``, or a phase that has begun."""

    number: int
    phase: Literal["working", "testing", "done"]
    event: Event | None = None
    candidate: Candidate | None = None


OnProgress = Callable[[Progress], None]


async def best_of(
    store: Store, data: Path, contest: BestOfRequest, on_progress: OnProgress
) -> tuple[str, list[Candidate]]:
    """Return the id of the session they were forked from, and the candidates, the best first.

    Those that pass the test come first, of those the ones with the fewest changed lines. Raises as ``create`` does.
    """
    config = contest.config
    if config.files(data).history is None:
        raise SessionError("candidates need copies of the files: work in a sandbox, and not in place")
    opened = await create(store, data, config, lambda _: None, contest.task.strip().split("\n")[0][:TITLE])
    try:
        await begin(data, opened)
    finally:
        await opened.close()
    purse, places = _SharedBudget(config.limits, contest.number), asyncio.Semaphore(_at_once(contest))
    attempts = [_Attempt(store, data, contest, opened.log, purse, number, on_progress) for number in _numbers(contest)]

    async def run(attempt: _Attempt) -> Candidate:
        async with places:
            return await attempt.run()

    tasks = [asyncio.create_task(run(attempt)) for attempt in attempts]
    try:
        found = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    candidates = sorted(found, key=lambda one: (not one.passed, one.lines))
    await _conclude(store, opened.log, contest, candidates)
    return opened.id, candidates


def _numbers(contest: BestOfRequest) -> range:
    return range(1, contest.number + 1)


def _at_once(contest: BestOfRequest) -> int:
    return 1 if any(model.startswith("local:") for model, _ in contest.models) else AT_ONCE


class _SharedBudget:
    """What all candidates together may spend: each gets an equal share of what is left when it begins."""

    def __init__(self, limits: Limits, number: int) -> None:
        self._limits, self._waiting = limits, number
        self._left = {name: float(value) for name in ("cost", "tokens", "time") if (value := getattr(limits, name))}

    def share(self) -> Limits | None:
        """Return the limits of the next candidate; None if the budget is used up."""
        each = {name: left / self._waiting for name, left in self._left.items()}
        self._waiting -= 1
        if any(share <= 0 or (name == "tokens" and share < 1) for name, share in each.items()):
            return None
        for name, share in each.items():
            self._left[name] -= share
        return self._limits.model_copy(update={**each, **({"tokens": int(each["tokens"])} if "tokens" in each else {})})

    def give_back(self, share: Limits, state: State) -> None:
        """Return a candidate's unspent share to the budget."""
        spent = {"cost": state.cost, "tokens": state.usage.total, "time": state.time}
        for name in self._left:
            self._left[name] += getattr(share, name) - spent[name]


class _Attempt:
    """One running candidate."""

    def __init__(
        self,
        store: Store,
        data: Path,
        contest: BestOfRequest,
        origin: EventLog,
        purse: _SharedBudget,
        number: int,
        on_progress: OnProgress,
    ) -> None:
        self._store, self._data, self._contest, self._origin = store, data, contest, origin
        self._purse, self._number, self._on_progress = purse, number, on_progress

    async def run(self) -> Candidate:
        """Run the agent on the task, then run the test on the resulting files."""
        contest = self._contest
        model, base_url = contest.models[(self._number - 1) % len(contest.models)]
        share = self._purse.share()
        limits = contest.config.limits if share is None else share
        at = await self._origin.head()
        task = None if share is None else contest.task
        settings: dict[str, Any] = {"model": model, "base_url": base_url, "limits": limits}
        log = await fork(self._store, self._data, self._origin, at, "both", task, **settings)
        if share is None:
            return self._done(Candidate(log.id, model, State(), 0, None, "the others have spent what all may spend"))
        opened = await reopen(self._store, self._data, log.id, self._watch)
        self._on_progress(Progress(self._number, "working"))
        try:
            state = await opened.run()
        finally:
            await opened.close()
            self._purse.give_back(share, opened.state)
        self._on_progress(Progress(self._number, "testing"))
        changed = await changes(self._data, log)
        lines = sum(added + deleted for _, added, deleted in diffstat(changed))
        exit_code, output = await self._tested(opened, changed)
        return self._done(Candidate(log.id, model, state, lines, exit_code, output))

    def _watch(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        if isinstance(item, Event):
            self._on_progress(Progress(self._number, "working", item))

    def _done(self, candidate: Candidate) -> Candidate:
        self._on_progress(Progress(self._number, "done", candidate=candidate))
        return candidate

    async def _tested(self, opened: Session, changed: Sequence[Change]) -> tuple[int | None, str]:
        """Run the test on the user's files with the candidate's changes, and with nothing else that it left."""
        session = session_dir(self._data, opened.id)
        folder = session / "tested"
        sandbox: Sandbox | None = None
        try:
            await asyncio.to_thread(_lay_out, session, folder, changed)
            sandbox = sandbox_of(self._store, opened.config.files(folder), opened.config, snapshots=False)
            await sandbox.start()
            observation = await sandbox.execute(CmdRunAction(command=self._contest.test, timeout=TEST_SECONDS))
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
    """Make a folder like a session's, whose base is that of ``session`` after the changes were applied."""
    workspace = Workspace.load(session)
    folder.mkdir(mode=0o700)
    copy_tree(Path(workspace.base.name), folder, workspace.base.parent)
    apply(changed, folder / "base")
    replace(workspace, base=folder / "base", tree="").save(folder)


async def _conclude(store: Store, log: EventLog, contest: BestOfRequest, candidates: Sequence[Candidate]) -> None:
    """Say in the session they were forked from what came of them."""
    best, passed = candidates[0], sum(candidate.passed for candidate in candidates)
    said = f"{passed} of {len(candidates)} candidates pass `{contest.test}`"
    if passed:
        said += f"; the best is session {best.session}, {best.lines} changed lines"
    over = AgentStateChangedObservation(agent_state="stopped", reason="agent", content=said)
    async with log.lease():
        await log.append(over)
    await store.update(log.id, state="stopped")
