"""The sessions of a run's rollouts: copies of their trajectories, and of the logs of those that are under way."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from handiwork.agents.state import State
from handiwork.evals.running.manifest import Manifest
from handiwork.evals.running.results import rollout_name
from handiwork.evals.running.run import BLOBS
from handiwork.events.base import Event
from handiwork.events.codec import from_json, to_json
from handiwork.log.blobs import Blobs, digests_in
from handiwork.log.database import FILE
from handiwork.log.errors import BlobMissing, LogError, SessionMissing
from handiwork.log.eventlog import EventLog
from handiwork.log.redaction.redactor import Redactor
from handiwork.log.session import ROLLOUT
from handiwork.log.store import Store


class TrajectoryError(LogError):
    """A trajectory cannot be read; the message says where and why."""


class RolloutStore(Store):
    """A store that copies a trajectory of the run in the folder ``out`` when its session is first asked for."""

    def __init__(self, data: Path, out: Path, manifest: Manifest) -> None:
        super().__init__(data)
        self._out, self._manifest = out, manifest
        self._trajectories: dict[str, tuple[Path, str]] = {}
        self._copies: dict[str, asyncio.Task[None]] = {}

    async def log(self, session_id: str) -> EventLog:
        """Return the log of a session. Raises SessionMissing, TrajectoryError."""
        if session_id in self._trajectories and session_id not in self._copies:
            self._copies[session_id] = asyncio.create_task(self._copy(session_id))
        copy = self._copies.get(session_id)
        if copy is not None and copy is not asyncio.current_task():
            await asyncio.shield(copy)
        return await super().log(session_id)

    async def _copy(self, session: str) -> None:
        file, title = self._trajectories[session]
        try:
            await self.extend(session, title, await asyncio.to_thread(read_trajectory, file), self._out / BLOBS)
            del self._trajectories[session]
        finally:
            del self._copies[session]

    def offer(self, file: Path, rollout: tuple[str, int]) -> str:
        """Return the id of the session of a trajectory, "" if it has no events."""
        with file.open("rb") as lines:
            first = lines.readline().rstrip()
        if not first:
            return ""
        session = session_of(rollout, first)
        self._trajectories[session] = file, rollout_name(rollout)
        return session

    async def extend(self, session: str, title: str, events: Sequence[Event], blobs: Path) -> None:
        """Make the session one with these events; it has none, or the first of them, already.

        ``blobs`` is the folder with the blobs that the events refer to.
        """
        with suppress(SessionMissing):
            log = await super().log(session)
            if rest := events[await log.head() :]:
                await self._copy_blobs(rest, blobs)
                async with log.lease():
                    await log.append(*rest)
            return
        await self._copy_blobs(events, blobs)
        state = State()
        for event in events:
            state.apply(event)
        conditions = self._manifest.conditions
        await self.create(
            agent=conditions.agent,
            model=conditions.model,
            owner=ROLLOUT,
            title=title,
            session_id=session,
            events=events,
            state=state.agent_state,
        )

    async def _copy_blobs(self, events: Sequence[Event], folder: Path) -> None:
        source = Blobs(folder, Redactor())
        for digest in await asyncio.to_thread(source.listed, digests_in(map(to_json, events))):
            with suppress(BlobMissing):  # a rollout that ended meanwhile takes its folder with it
                await self.blobs.put(await source.get(digest))


class LiveRollout:
    """A rollout that another process works on: its events so far, and their state."""

    def __init__(self, rollout: tuple[str, int]) -> None:
        self.rollout = rollout
        self.session = ""
        self.state = State()
        self.events: list[Event] = []
        self._log: EventLog | None = None
        self._data: Path | None = None
        self._open = AsyncExitStack()

    @property
    def blobs(self) -> Path:
        """The folder of the events' blobs."""
        assert self._data is not None
        return self._data / "blobs"

    async def read(self, data: Path) -> None:
        """Read the new events in a data folder; a new folder is that of another attempt. Raises LogError."""
        if data != self._data:
            await self.close()
            self.session, self.state, self.events, self._data = "", State(), [], data
        if self._log is None:
            if not (data / FILE).exists():
                return
            store = await self._open.enter_async_context(Store.open(data))
            if not (sessions := await store.sessions()):
                await self.close()
                return
            self._log = await store.log(sessions[-1].id)
        new = await self._log.read(after=len(self.events))
        for event in new:
            self.state.apply(event)
        self.events += new
        if self.events:
            self.session = session_of(self.rollout, to_json(self.events[0]).encode())

    async def close(self) -> None:
        """Close the log."""
        self._log = None
        await self._open.aclose()
        self._open = AsyncExitStack()


def session_of(rollout: tuple[str, int], first: bytes) -> str:
    """Return the id of the session for an attempt at a rollout, whose first event is ``first``."""
    instance, trial = rollout
    return hashlib.sha256(f"{instance}\0{trial}\0".encode() + first).hexdigest()[:16]


def read_trajectory(file: Path) -> list[Event]:
    """Return the events in a file. Raises TrajectoryError."""
    events: list[Event] = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                events.append(from_json(line))
            except ValueError as error:
                raise TrajectoryError(f"{file}, line {number} is no event: {error}") from error
    return events
