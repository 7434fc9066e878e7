"""Notes of the rollouts that are under way, in the folder ``underway`` of a run.

Programs that follow the run read them, and so does the run, to count what an interrupted rollout has cost.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from handiwork.agents.state import State
from handiwork.evals.running.results import Result
from handiwork.evals.running.rollout import RolloutJob
from handiwork.events.base import Model, utc_now
from handiwork.log.database import FILE
from handiwork.log.errors import LogError
from handiwork.log.store import Store
from handiwork.process import Process

FOLDER, WORK = "underway", "work"
"""The folder of the notes, and the link to the folder with the rollouts' files, both in a run's folder."""


class Underway(Model):
    """A rollout that ``process`` executes; ``name`` is that of its job."""

    id: str
    trial: int
    group: str
    name: str
    began: datetime
    process: Process

    def data(self, out: Path) -> Path | None:
        """Return the data folder of the newest attempt of the run in ``out``, None if none is on this machine."""
        folders = (out / WORK).glob(f"{self.name}*/data")
        return max(folders, default=None)


def note(out: Path, job: RolloutJob) -> Path:
    """Note in the run's folder that the rollout is under way; return the file, which an interrupted one leaves."""
    content = Underway(
        id=job.instance.id,
        trial=job.trial,
        group=job.instance.group,
        name=job.name,
        began=utc_now(),
        process=Process.this(),
    )
    file = out / FOLDER / job.name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content.model_dump_json())
    return file


def clear(out: Path) -> None:
    """Remove the notes of rollouts that were interrupted."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


async def costs(out: Path) -> list[Result]:
    """Return what the newest attempts at the noted rollouts have cost, as far as their sessions are on this machine.

    They are results without a score: until now, if the rollouts run, and in all, if their process has ended.
    """
    results: list[Result] = []
    for one in _notes(out):
        data = one.data(out)
        if data is None or not (data / FILE).exists():
            continue
        try:
            state = await _state(data)
        except LogError:  # its files are incomplete
            continue
        if state.usage.total or state.cost or state.unpriced:
            result = Result(
                id=one.id,
                trial=one.trial,
                group=one.group,
                outcome="interrupted",
                cost=state.cost,
                unpriced=state.unpriced,
                usage=state.usage,
                steps=state.iteration,
            )
            results.append(result)
    return results


async def _state(data: Path) -> State:
    state = State()
    async with Store.open(data) as store:
        for session in await store.sessions():
            for event in await (await store.log(session.id)).read():
                state.apply(event)
    return state


def read(out: Path) -> Iterator[Underway]:
    """Yield the notes whose process runs, oldest first."""
    yield from (note for note in _notes(out) if note.process.alive() is not False)


def _notes(out: Path) -> list[Underway]:
    notes: list[Underway] = []
    for file in (out / FOLDER).glob("*"):
        try:
            notes.append(Underway.model_validate_json(file.read_bytes()))
        except (FileNotFoundError, ValidationError):  # it has just ended, or is being written
            continue
    return sorted(notes, key=lambda note: note.began)
