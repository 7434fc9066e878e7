"""A run as the web app shows it, followed while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from handiwork.errors import HandiworkError
from handiwork.evals.reporting.summary import ending, natural
from handiwork.evals.reporting.trajectory import harmless
from handiwork.evals.running import manifest, underway
from handiwork.evals.running.results import FILE, NOT_MEASURED, Result, Results, rollout_name
from handiwork.evals.running.underway import Underway
from handiwork.evals.viewing.rollout_store import LiveRollout, RolloutStore
from handiwork.events.base import utc_now
from handiwork.log.store import Store
from handiwork.server.schemas.evaluation import RolloutRow, RunView

SECONDS = 0.5
"""Seconds between two looks into the run's folder."""

SHORT = 300
"""The most characters of a text in the list of rollouts."""

log_messages = logging.getLogger("handiwork.evals")


class RunFollower:
    """The run in the folder ``out``. Raises ResultsError if there is none."""

    def __init__(self, out: Path) -> None:
        self._out, self._manifest = out, manifest.read(out)
        self._results: dict[tuple[str, int], tuple[Result, str]] = {}
        self._read = -1
        self._live: dict[str, tuple[Underway, LiveRollout]] = {}

    @asynccontextmanager
    async def followed(self, data: Path) -> AsyncGenerator[Store]:
        """Follow the run, and give the store in the folder ``data`` that has the rollouts' sessions."""
        async with RolloutStore(data, self._out, self._manifest) as store:
            await self.look(store)
            task = asyncio.create_task(self._follow(store))
            try:
                yield store
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                for _, live in self._live.values():
                    await live.close()

    async def _follow(self, store: RolloutStore) -> None:
        while True:
            await asyncio.sleep(SECONDS)
            try:
                await self.look(store)
            except (HandiworkError, OSError) as error:
                log_messages.warning("the run cannot be read: %s", error)

    async def look(self, store: RolloutStore) -> None:
        """Read the changes in the run's folder. Raises ResultsError, LogError, TrajectoryError, OSError."""
        notes = {note.name: note for note in underway.read(self._out)}
        for name, note in notes.items():
            _, live = self._live.setdefault(name, (note, LiveRollout((note.id, note.trial))))
            if (data := note.data(self._out)) is not None:
                await live.read(data)
            if live.session:
                await store.extend(live.session, rollout_name(live.rollout), live.events, live.blobs)
        self._read_results(store)
        for name in self._live.keys() - notes.keys():
            _, live = self._live.pop(name)
            await live.close()
            if live.session:
                await store.log(live.session)  # the last events, which only the trajectory has

    def _read_results(self, store: RolloutStore) -> None:
        output = self._out / FILE
        size = output.stat().st_size if output.exists() else 0
        if size == self._read:
            return
        for key, result in Results(self._out).by_key.items():
            known = self._results.get(key)
            if known is None or known[0] != result:
                file = self._out / result.trajectory
                session = store.offer(file, key) if result.trajectory and file.is_file() else ""
                self._results[key] = result, session
        self._read = size

    def view(self, session: str) -> RunView:
        """Return the run with all rollouts, or only that of the session if it is not ""."""
        running = [_running(note, live) for note, live in self._live.values()]
        again = {(row.id, row.trial) for row in running}
        most = None if session else SHORT
        finished = [_finished(*one, most) for key, one in self._results.items() if key not in again]
        rows = [row for row in (*running, *finished) if session in ("", row.session)]
        conditions = self._manifest.conditions
        return RunView(
            benchmark=Path(conditions.benchmark).stem,
            split=conditions.split,
            agent=conditions.agent,
            model=conditions.model,
            metric=self._manifest.metric,
            folder=str(self._out),
            total=self._manifest.rollouts,
            rollouts=sorted(rows, key=lambda row: (natural(row.id), row.trial)),
        )


def _finished(result: Result, session: str, most: int | None) -> RolloutRow:
    failed = result.outcome in NOT_MEASURED
    why = result.why if most is None else result.why.strip().rpartition("\n")[2]
    return RolloutRow(
        session=session,
        id=result.id,
        name=rollout_name(result.key),
        trial=result.trial,
        group=result.group,
        status="failed" if failed else "solved" if result.score == 1 else "unsolved",
        outcome=ending(result),
        why=_text(why, most),
        score=result.score,
        expected=_text(result.expected, most),
        answer=_text(result.answer, most),
        steps=result.steps,
        tokens=result.usage.total,
        cost=None if result.unpriced else result.cost,
        seconds=result.seconds,
    )


def _running(note: Underway, live: LiveRollout) -> RolloutRow:
    state = live.state
    return RolloutRow(
        session=live.session,
        id=note.id,
        name=rollout_name(live.rollout),
        trial=note.trial,
        group=note.group,
        status="running",
        outcome="running",
        why="",
        score=None,
        expected="",
        answer="",
        steps=state.iteration,
        tokens=state.usage.total,
        cost=None if state.unpriced else state.cost,
        seconds=(utc_now() - note.began).total_seconds(),
    )


def _text(text: str, most: int | None) -> str:
    """Return a text without colours and unseen characters, with at most ``most`` characters of its beginning."""
    text = harmless(text)
    return text if most is None or len(text) <= most else f"{text[:most]} …"
