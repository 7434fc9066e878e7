"""The log and the State folded from it, kept in sync."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager

from handiwork.agents.state import State
from handiwork.events.action import AgentState, ChangeAgentStateAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import AgentStateChangedObservation, StateReason
from handiwork.log.eventlog import EventLog
from handiwork.session.policies.knowledge import Knowledge
from handiwork.session.steps.interrupt import Interrupt
from handiwork.session.steps.live import Observer, OutputDelta, Status, TextDelta


class ReaderGoneError(BrokenPipeError):
    """The program that reads what a session shows has closed the pipe; the log is whole, and the session can resume."""


Companions = Callable[[Sequence[Event]], Awaitable[list[Event]]]
"""Returns the events that the log gets together with these."""


async def alone(_: Sequence[Event]) -> list[Event]:
    """Return no companions."""
    return []


class Journal:
    """Appends events with their ``companions``, and folds every event of the log once, in order.

    ``interrupt`` is set while the user interrupts the session, ``running`` while the session runs.
    """

    def __init__(
        self, log: EventLog, watch: Observer, companions: Companions = alone, knowledge: Knowledge | None = None
    ) -> None:
        self.state = State()
        self._companions, self._knowledge = companions, knowledge or Knowledge()
        self.interrupt, self.running = Interrupt(), asyncio.Event()
        self.log, self._watch = log, watch
        self._folding = asyncio.Lock()

    async def append(self, *events: Event) -> list[Event]:
        """Append the events and their companions, all or none; return the events as stored."""
        stored = await self.log.append(*events, *await self._companions(events))
        await self.catch_up(stored)
        return stored[: len(events)]

    async def change(self, agent_state: AgentState, reason: StateReason, text: str, subtask: int = 0) -> None:
        """Append a change of the state of the session or of a subtask."""
        changed = AgentStateChangedObservation(agent_state=agent_state, reason=reason, content=text, subtask=subtask)
        await self.append(changed)

    async def catch_up(self, new: list[Event] | None = None) -> None:
        """Fold the log's new events, from this process and from others; append the knowledge that they call for."""
        async with self._folding:
            if new is None or (new and new[0].id > self.state.last_id + 1):
                new = await self.log.read(after=self.state.last_id)
            for event in new:
                if event.id > self.state.last_id:
                    self.state.apply(event)
                    self._update_interrupt(event)
                    self.show(event)
            if self.state.agent_state == "running":
                self.running.set()
            else:
                self.running.clear()
        if events := self._knowledge.joining(self.state):
            await self.append(*events)

    @contextmanager
    def stream_redacted(self, delta: Callable[[str], TextDelta | OutputDelta]) -> Generator[Callable[[str], None]]:
        """Return a function that shows pieces of a text without secrets; at the end it shows the rest it held back."""
        pieces = self.log.redactor.pieces()

        def show(text: str) -> None:
            if clear := pieces.feed(text):
                self.show(delta(clear))

        try:
            yield show
        finally:
            if rest := pieces.end():
                self.show(delta(rest))

    def show(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        """Show the item to the session's observer. Raises ReaderGoneError."""
        try:
            self._watch(item)
        except BrokenPipeError as error:
            raise ReaderGoneError(*error.args) from error

    async def listen(self) -> None:
        """Fold other processes' events as they arrive."""
        async for head in self.log.heads():
            if head > self.state.last_id:
                await self.catch_up()

    def _update_interrupt(self, event: Event) -> None:
        match event:
            case ChangeAgentStateAction(agent_state="paused" | "stopped"):
                self.interrupt.set()
            case ChangeAgentStateAction(agent_state="running") | MessageAction(source="user"):
                self.interrupt.clear()
            case _:
                pass
