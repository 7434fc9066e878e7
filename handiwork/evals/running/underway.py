"""Notes of the rollouts that are under way, in the folder ``underway`` of a run, for programs that follow it."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from handiwork.evals.running.rollout import RolloutJob
from handiwork.events.base import Model, utc_now
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


@contextmanager
def noted(out: Path, job: RolloutJob) -> Generator[None]:
    """Note in the run's folder that the rollout is under way."""
    note = Underway(
        id=job.instance.id,
        trial=job.trial,
        group=job.instance.group,
        name=job.name,
        began=utc_now(),
        process=Process.this(),
    )
    file = out / FOLDER / job.name
    file.parent.mkdir(exist_ok=True)
    file.write_text(note.model_dump_json())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def clear(out: Path) -> None:
    """Remove the notes of a process that was killed."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def read(out: Path) -> Iterator[Underway]:
    """Yield the notes whose process runs, oldest first."""
    notes: list[Underway] = []
    for file in (out / FOLDER).glob("*"):
        try:
            note = Underway.model_validate_json(file.read_bytes())
        except (FileNotFoundError, ValidationError):  # it has just ended, or is being written
            continue
        if note.process.alive() is not False:
            notes.append(note)
    yield from sorted(notes, key=lambda note: note.began)
