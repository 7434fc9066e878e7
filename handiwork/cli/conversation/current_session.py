"""The session of a conversation: it opens with a message, runs in the background, and stays open between messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from handiwork.agents.state import State
from handiwork.cli.commands.run import await_answer
from handiwork.cli.dialog.questions import Questions
from handiwork.cli.dialog.remote_session import RemoteSession, open_remote
from handiwork.cli.dialog.slash_commands import Ask
from handiwork.cli.errors import explain
from handiwork.cli.terminal.view import View
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.record import SessionWanted
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig, title_of
from handiwork.session.open import create, reopen
from handiwork.session.session import Session
from handiwork.session.steps.live import OutputDelta, Status, TextDelta
from handiwork.session.user_events import accepted_plan, proposes_plan, state_of

PATIENCE = 10.0
"""Seconds in which a session that is left may end its action."""

_PAUSED = ("paused", "error")


class CurrentSession:
    """Runs one session at a time. ``config`` is that of a new one, ``id`` the session's, None before its first message.

    ``ask`` asks the user, ``show_end`` shows the state when the agent stops, ``notice`` prints an error.
    """

    def __init__(
        self,
        store: Store,
        config: SessionConfig,
        view: View,
        ask: Ask,
        show_end: Callable[[EventLog, State], Awaitable[None]],
        notice: Callable[[str], None],
    ) -> None:
        self.store, self.config = store, config
        self.id: str | None = None
        self.working = self.pausing = False
        self._view, self._ask, self._show_end, self._notice = view, ask, show_end, notice
        self._opened: Session | RemoteSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._early: list[str] = []
        self._wanted, self._asked_again = asyncio.Event(), asyncio.Event()

    @property
    def state(self) -> State | None:
        """The state of the open session."""
        return self._opened.state if self._opened is not None else None

    async def log(self) -> EventLog | None:
        """Return the session's log; None before its first message."""
        return await self.store.log(self.id) if self.id is not None else None

    async def send(self, text: str) -> None:
        """Give the agent a message; while it works, it reads the message before its next step."""
        if self._task is None or self._task.done():
            self._start(text)
        elif self._opened is None:
            self._early.append(text)
        else:
            await self._opened.log.append(_message(text, self._opened.state))

    @property
    def proposes_plan(self) -> bool:
        """Whether the agent waits for the user to accept its plan."""
        return self.state is not None and proposes_plan(self.state)

    async def resume(self) -> None:
        """Accept a proposed plan, ask again about actions, or let a session that is paused or not open continue."""
        if self.id is not None and (self._task is None or self._task.done()):
            self._start(None)
        elif self._opened is not None and self.proposes_plan:
            await self._opened.log.append(*accepted_plan(self._opened.state))
        elif self._opened is not None and self._opened.state.agent_state == "awaiting_user_confirmation":
            self._asked_again.set()
        elif self._opened is not None and self._opened.state.agent_state in _PAUSED:
            await self._opened.log.append(ChangeAgentStateAction(agent_state="running", source="user"))
            self._asked_again.set()  # it may have a question open

    async def interrupt(self) -> None:
        """Pause the agent; the second time, or before the session is open, stop it at once."""
        if self.pausing or self._opened is None:
            await self.close()
            return
        self.pausing = True
        await self._opened.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))

    async def leave(self) -> None:
        """Pause the agent if it works, and close the session."""
        if self.working and self._task is not None:
            self._wanted.set()  # so that the task ends with the action
            await self.interrupt()
            await asyncio.wait([self._task], timeout=PATIENCE)
        await self.close()

    async def close(self) -> None:
        """Close the session; an action that runs is stopped. The next message opens it again."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def switch(self, session: str | None) -> None:
        """Continue with another session, or with a new one for None, once there is a message."""
        await self.close()
        self.id = session

    def observe(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        """Show an event, streaming text or a status; this is the session's Observer."""
        if isinstance(item, SessionWanted) and item.id > self._view.after:  # an earlier one has been granted
            self._wanted.set()
        self._view(item)

    def _start(self, message: str | None) -> None:
        self.working, self.pausing = True, False
        self._task = asyncio.create_task(self._attend(message))

    async def _attend(self, message: str | None) -> None:
        self._wanted.clear()
        try:
            opened, head = await self._open(message)
            self.id = opened.id
            self._view.open(opened.id, head)
            async with opened.hold_lease():
                self._opened = opened
                early, self._early = self._early, []
                for text in early:
                    await opened.log.append(_message(text, opened.state))
                await self._follow(opened)
        except Exception as error:  # noqa: BLE001 - a session's error does not end the conversation
            self._notice(explain(error)[1])
        finally:
            self._opened, self.working = None, False
            self._view.activity.clear()

    async def _open(self, message: str | None) -> tuple[Session | RemoteSession, int]:
        """Open the session, with the user's message in its log; return it with its last event before."""
        if self.id is None:
            text = message or ""
            self._view.reset()
            first = MessageAction(content=text)
            return await create(self.store, data_dir(), self.config, self.observe, title_of(text), first), 0
        log = await self.store.log(self.id)
        head = await log.head()
        events = [] if message is None else [_message(message, await state_of(log))]
        self._view.reset(head)
        if await log.holder() is None:
            return await reopen(self.store, data_dir(), log.id, self.observe, events), head
        opened = await open_remote(log, self.observe, {})
        await log.append(*events)
        return opened, head

    async def _follow(self, opened: Session | RemoteSession) -> None:
        """Run the session whenever there is something to do, until another process wants it."""
        questions = Questions(opened, self._view, self._ask)
        message: str | None = None
        while True:
            self.working, self.pausing = True, False
            state = await opened.run(message)
            self.working, message = False, None
            self._view.activity.clear()
            await self._show_end(opened.log, state)
            if isinstance(opened, RemoteSession) and state.agent_state == "running":
                return  # the process that ran it is gone: Enter or the next message opens it here
            if questions.are_needed(state):
                resumed, answer = await await_answer(opened, questions(state))
                if resumed or answer is not None:
                    message = answer or None
                    continue
            if not await self._resumed(opened):
                return

    async def _resumed(self, opened: Session | RemoteSession) -> bool:
        """Wait until the session runs again, or is to ask again, or another process wants it; False for the last."""
        self._asked_again.clear()
        events = opened.wait_until_resumed(), self._asked_again.wait(), self._wanted.wait()
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(event) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return waits[0].done() or waits[1].done()
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


def _message(text: str, state: State) -> MessageAction:
    return MessageAction(content=text, source="user", subtask=state.active)
