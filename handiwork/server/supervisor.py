"""The sessions that this server runs: each is a background task that outlives the browser and restarts after a crash.

A session that runs, or is about to run, has a file ``served`` in its folder: a starting server resumes those sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.agents.state import State
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import AgentStateChangedObservation
from handiwork.events.record import ApprovalEvent, SessionWanted
from handiwork.llm.local.weights import Downloads
from handiwork.log.errors import LeaseHeld, LogError, SessionMissing
from handiwork.log.eventlog import EventLog
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store
from handiwork.process import Process
from handiwork.server.live import Channels
from handiwork.session import open as assemble
from handiwork.session.config import SessionConfig, SessionError
from handiwork.session.pull_request import ForgeTokens
from handiwork.session.session import Session
from handiwork.session.steps.live import OutputDelta, Status, TextDelta
from handiwork.session.storage.layout import session_dir

MARK = "served"
IDLE = 300.0
"""Seconds for which a session that waits for the user keeps its sandbox."""

WAITING_LIMIT = 20
"""The number of sessions that may wait with their sandbox; beyond it the longest waiting one is closed."""

CACHED_STATES = 32
"""The number of cached states of sessions that do not run here."""
CATCH_UP = 1.0
"""Seconds for the state of a running session to have a change of its settings, at most."""

RETRY = 0.5
"""Seconds between two checks of a session that another process runs."""

Open = Callable[["HostedSession"], Awaitable[Session]]

log_messages = logging.getLogger("handiwork.server")


@dataclass(eq=False)
class HostedSession:
    """A session that runs here; ``opened`` is set once it is open. Its live output goes to its followers."""

    id: str
    channels: Channels
    opened: Session | None = None
    task: asyncio.Task[None] | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    attached: int = 0
    """The number of open terminals and requests of previews, which keep a waiting session open and end with it."""
    used: float = 0.0
    """The event loop's time when the session began to wait, or a terminal or preview last used it."""
    users: int = 0
    free: asyncio.Event = field(default_factory=asyncio.Event)
    last: int = 0

    def watch(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        """Handle an event or a piece of live output of the session."""
        if not isinstance(item, Event):
            self.channels.say(self.id, item, self.last)
            return
        self.last = item.id
        match item:
            case MessageAction(source="user"):
                self.leave.clear()
            case ChangeAgentStateAction(agent_state=state):
                # A stop from before the session was opened is past: the user opened it again.
                (self.leave.set if state == "stopped" and self.ready.is_set() else self.leave.clear)()
            case SessionWanted() if self.ready.is_set():  # an earlier one has been granted
                self.leave.set()
            case _:
                pass


class SessionSupervisor:
    """Runs the sessions of a data folder and reads their state."""

    def __init__(self, store: Store, data: Path, idle: float = IDLE) -> None:
        self.store, self.data, self.channels = store, data, Channels()
        self.deleted: list[str] = []
        self.forge_tokens = ForgeTokens()
        self.downloads = Downloads()
        self._idle = idle
        self._hosted: dict[str, HostedSession] = {}
        self._waiting: dict[str, HostedSession] = {}
        self._states: OrderedDict[str, State] = OrderedDict()
        self._closing = False

    async def start(self) -> None:
        """Resume the sessions that were running when the last server ended."""
        for mark in sorted(self.data.glob(f"sessions/*/{MARK}")):
            try:
                await self.wake(mark.parent.name)
            except SessionMissing:
                continue
            except LogError as error:
                log_messages.warning("session %s: %s", mark.parent.name, error)

    async def close(self) -> None:
        """Stop all sessions and downloads; the next server resumes those sessions that run now."""
        self._closing = True
        await self.downloads.close()
        tasks = [one.task for one in self._hosted.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def counts(self) -> tuple[int, int]:
        """The number of sessions that run here, and the number of those that wait for the user."""
        return len(self._hosted), len(self._waiting)

    def runs(self, session: str) -> bool:
        """Return whether the session runs here."""
        return session in self._hosted

    async def interrupted(self, info: SessionInfo) -> bool:
        """Return whether the process of a session ended while it was running, and the session does not run here."""
        return not self.runs(info.id) and not info.read_only and await self.store.interrupted(info)

    async def state(self, log: EventLog) -> State:
        """Return a session's state; it may change at the next await."""
        hosted = self._hosted.get(log.id)
        if hosted is not None and hosted.opened is not None and hosted.ready.is_set():
            return hosted.opened.state
        state = self._states.setdefault(log.id, State())
        self._states.move_to_end(log.id)
        while len(self._states) > CACHED_STATES:
            self._states.popitem(last=False)
        # Small pages: other requests are answered between two of them.
        while page := await log.read(after=state.last_id, limit=100):
            for event in page:
                if event.id == state.last_id + 1:  # another task may have applied it during the read
                    state.apply(event)
        return state

    async def create(self, config: SessionConfig, message: MessageAction, title: str) -> EventLog:
        """Create a session with the message in its log and run it. Raises like ``assemble.create``."""
        hosted = HostedSession("", self.channels)
        opened = await assemble.create(self.store, self.data, config, hosted.watch, title, message, marks=(MARK,))
        hosted.id = opened.id

        async def opened_session(_: HostedSession) -> Session:
            return opened

        self._begin(hosted, opened.log, opened_session)
        return opened.log

    async def say(self, log: EventLog, *events: Event) -> int:
        """Append the user's events and resume the session if they ask for it; return the last event's id."""
        # A change of settings or permissions asks for nothing: it leaves an interrupted session interrupted.
        asks = any(isinstance(event, ApprovalEvent | ChangeAgentStateAction | MessageAction) for event in events)
        if asks:
            self.mark(log.id)
        stored = await self._append(log, *events)
        if asks:
            await self.wake(log.id)
        else:
            await self.wait_for_state(log, stored[-1].id, CATCH_UP)
        return stored[-1].id

    async def _append(self, log: EventLog, *events: Event) -> list[Event]:
        """Append the user's events; an interrupted session changes its state at its last event: it ran until then."""
        state = await self.state(log)
        if state.agent_state != "running" or self.runs(log.id) or await log.holder() is not None:
            return await log.append(*events)
        fields = {"timestamp": state.last_timestamp}
        dated = [e.with_fields(**fields) if isinstance(e, ChangeAgentStateAction) else e for e in events]
        return await log.append(*dated)

    async def wait_for_state(self, log: EventLog, event: int, seconds: float) -> None:
        """Wait until the session's state has an event, which the session may still be reading; ``seconds`` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                state = await self.state(log)
                while state.last_id < event:
                    await asyncio.sleep(0.01)
                    state = await self.state(log)

    async def wake(self, session: str) -> None:
        """Run the session here if it has work to do. Another process that runs it reads the log by itself."""
        log = await self.store.log(session)
        if self.runs(log.id):
            return
        if (state := (await self.state(log)).agent_state) != "running":
            if state != "loading" and state != (await log.info()).state and await log.holder() is None:
                await self.store.update(log.id, state=state)
            self._unmark(log.id)
        elif not self.runs(log.id) and not self._closing:
            self._begin(HostedSession(log.id, self.channels), log, self._reopen)

    @asynccontextmanager
    async def opened(self, log: EventLog) -> AsyncGenerator[Session]:
        """Open the session in this process and keep it open inside the context.

        An interrupted session is paused first: who needs its files or its sandbox does not ask the agent to go on.
        Raises LeaseHeld if another process runs it, SessionError if it cannot be opened.
        """
        holder = await log.holder()
        if holder is not None and holder != Process.this():
            raise LeaseHeld(log.id, holder.host, holder.pid)
        about_to_run = self.runs(log.id) or (session_dir(self.data, log.id) / MARK).exists()
        if not about_to_run and (await self.state(log)).agent_state == "running":
            await self._append(log, ChangeAgentStateAction(agent_state="paused", source="user"))
            await self.store.update(log.id, state="paused")
        hosted = self._hosted.get(log.id)
        if hosted is None:
            hosted = HostedSession(log.id, self.channels)
            self._begin(hosted, log, self._reopen)
        assert hosted.task is not None
        ready = asyncio.create_task(hosted.ready.wait())
        await asyncio.wait({ready, hosted.task}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if hosted.opened is None or not hosted.ready.is_set():
            raise SessionError(f"session {log.id} could not be opened: retry, or read its last event")
        hosted.users += 1
        hosted.free.clear()
        try:
            yield hosted.opened
        finally:
            hosted.users -= 1
            if not hosted.users:
                hosted.free.set()

    @asynccontextmanager
    async def attached(self, log: EventLog, *, start: bool = False) -> AsyncGenerator[Session]:
        """Use the sandbox of a session that runs or waits here; the session may end before the context does.

        With ``start``, a session whose sandbox does not run is opened for that; its agent takes no step. Raises
        SessionError if the sandbox does not run, and the errors of ``opened``.
        """
        if start:
            async with self.opened(log) as opened:
                await opened.sandbox()
        hosted = self._hosted.get(log.id)
        opened = None if hosted is None or not hosted.ready.is_set() else hosted.opened
        if hosted is None or opened is None or not opened.has_sandbox:
            raise SessionError(f"the sandbox of session {log.id} does not run: start it, or resume the session")
        hosted.attached += 1
        try:
            yield opened
        finally:
            hosted.attached -= 1
            hosted.used = asyncio.get_running_loop().time()

    async def release(self, log: EventLog) -> None:
        """Close the session if it only waits for the user, so that another process can open it."""
        if (hosted := self._waiting.get(log.id)) is not None and hosted.task is not None:
            hosted.leave.set()
            await asyncio.wait({hosted.task})

    def forget(self, session: str) -> None:
        """Drop the cached state of a deleted session and report it to the list's followers."""
        self._states.pop(session, None)
        self.deleted.append(session)

    def mark(self, session: str) -> None:
        """Mark the session for the next server to resume."""
        with suppress(FileNotFoundError):
            (session_dir(self.data, session) / MARK).touch(mode=0o600)

    def _unmark(self, session: str) -> None:
        (session_dir(self.data, session) / MARK).unlink(missing_ok=True)

    async def _reopen(self, hosted: HostedSession) -> Session:
        return await assemble.reopen(self.store, self.data, hosted.id, hosted.watch)

    def _begin(self, hosted: HostedSession, log: EventLog, opener: Open) -> None:
        self._hosted[log.id] = hosted
        self._states.pop(log.id, None)
        hosted.task = asyncio.create_task(self._host(hosted, log, opener))

    async def _host(self, hosted: HostedSession, log: EventLog, opener: Open) -> None:
        try:
            if await self._wait_for_others(log):
                await self._serve(hosted, opener)
        except LogError as error:
            log_messages.warning("session %s: %s", log.id, error)
            await asyncio.sleep(RETRY)
        except Exception as error:
            log_messages.exception("session %s cannot be run", log.id)
            await self._record_failure(log, error)
            await asyncio.sleep(RETRY)
        finally:
            self._hosted.pop(log.id, None)
            self._waiting.pop(log.id, None)
        with suppress(LogError):  # the session missed events that came while it was closing
            await self.wake(log.id)

    async def _wait_for_others(self, log: EventLog) -> bool:
        """Wait while another process runs the session, which may end before it has read the last events.

        Return whether the session still has work to do.
        """
        waited = False
        while await log.holder() is not None:
            if (await self.state(log)).agent_state != "running":
                return False
            waited = True
            await asyncio.sleep(RETRY)
        return not waited or (await self.state(log)).agent_state == "running"

    async def _serve(self, hosted: HostedSession, opener: Open) -> None:
        opened = await opener(hosted)
        async with opened.hold_lease():
            hosted.opened = opened
            hosted.ready.set()
            try:
                while True:
                    if opened.state.agent_state == "running":
                        self.mark(hosted.id)  # another process may have resumed it
                        await opened.run()
                    if not await self._wait_until_resumed(hosted, opened):
                        break
                await self.store.update(hosted.id, state=opened.state.agent_state)
            finally:
                hosted.ready.clear()
                if hosted.users:
                    await hosted.free.wait()

    async def _wait_until_resumed(self, hosted: HostedSession, opened: Session) -> bool:
        """Wait for the user; return whether the session was resumed."""
        self._waiting[hosted.id] = hosted
        while len(self._waiting) > WAITING_LIMIT:
            unused = (session for session, one in self._waiting.items() if not one.attached)
            self._waiting.pop(next(unused, next(iter(self._waiting)))).leave.set()
        resumed = asyncio.create_task(opened.wait_until_resumed())
        leaving = asyncio.create_task(hosted.leave.wait())
        try:
            clock = asyncio.get_running_loop().time
            hosted.used = clock()
            while True:
                remaining = max(0.0, hosted.used + self._idle - clock())
                events = {resumed, leaving}
                done, _ = await asyncio.wait(events, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
                if hosted.attached:
                    hosted.used = clock()
                if done or hosted.used + self._idle <= clock():
                    return resumed in done
        finally:
            resumed.cancel()
            leaving.cancel()
            self._waiting.pop(hosted.id, None)

    async def _record_failure(self, log: EventLog, error: Exception) -> None:
        """Append the reason why the session cannot run to its log."""
        reason = str(error) or type(error).__name__
        with suppress(LogError):
            async with log.lease():
                await log.append(AgentStateChangedObservation(agent_state="error", reason="agent", content=reason))
            await self.store.update(log.id, state="error")
