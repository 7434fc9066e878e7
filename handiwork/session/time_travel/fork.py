"""Forks: a new session from any event of another, with the files of that moment. The old session does not change."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from handiwork.agents.base import Agent
from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.events.action import AgentState, ChangeAgentStateAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import SnapshotEvent
from handiwork.log.eventlog import EventLog
from handiwork.log.session import fresh_id
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig, SessionError, config_of
from handiwork.session.open import catalog_of, stored
from handiwork.session.session import Session
from handiwork.session.steps.pending import abandoned_actions
from handiwork.session.storage.layout import claimed, session_dir, snapshots_in_use
from handiwork.session.time_travel.history import history_of, tree_at
from handiwork.tasks import run_to_end
from handiwork.workspace.snapshots.object_store import remove_tree

Restored = Literal["both", "files", "conversation"]

FORKED = "Not executed: the session was forked before it began."
FILES_ONLY = (
    "The files were put back as they were at event {}; what was done after it is undone. Look before you go on."
)
CONVERSATION_ONLY = "The files are those of a later time: some work may be done already. Look before you go on."


async def fork(
    store: Store,
    data: Path,
    log: EventLog,
    at: int,
    restored: Restored = "both",
    message: str | None = None,
    **changes: Any,
) -> EventLog:
    """Return the log of a new session that continues from event ``at``, with fields of its configuration changed.

    With "files" the fork has the whole conversation and the files of that event; with "conversation" the reverse. The
    session appears in the log together with the user's ``message``. Raises SessionError, WorkspaceError, LogError.
    """
    events = await log.read()
    if not 0 < at <= len(events):
        raise SessionError(f"session {log.id} has no event {at}: its events are 1 to {len(events)}")
    if at < len(events) and isinstance(events[at - 1], SnapshotEvent):
        at += 1  # it belongs to the observation that follows it
    history = await history_of(data, log)
    config = SessionConfig.model_validate({**(await config_of(log)).model_dump(), **changes})
    agent = find(config.agent, catalog_of(config, history.workspace.base, data))
    conversation = len(events) if restored == "files" else at
    state = _state(events[:conversation], log.id, conversation)
    tree = tree_at(events[: len(events) if restored == "conversation" else at], log.id)
    # The folder comes first: a session in the log can be opened, whenever this process is killed.
    session_id = fresh_id()
    folder = session_dir(data, session_id)
    with await asyncio.to_thread(_claim, data, folder):
        try:
            tree = await run_to_end(asyncio.to_thread(history.fork, folder, tree))
        except BaseException:
            await asyncio.to_thread(remove_tree, folder)
            raise
        first = _first_events(state, config, agent, tree, _note(restored, at))
        for number, event in enumerate(first, conversation + 1):
            state.apply(event.with_fields(id=number))
        agent_state: AgentState = "running"
        if message is not None:
            first.append(MessageAction(content=message, source="user", subtask=state.active))
        elif state.agent_state == "running":
            # Nothing runs a fork until the user resumes it.
            agent_state = "paused"
            first.append(ChangeAgentStateAction(agent_state="paused", source="user"))
        else:
            agent_state = state.agent_state
        forking = log.fork(
            conversation,
            agent=config.agent,
            model=config.model,
            session_id=session_id,
            events=first,
            state=agent_state,
        )
        return await stored(forking, folder)


def _claim(data: Path, folder: Path) -> ExitStack:
    """Hold a new fork's folder, and the snapshots that its log will name."""
    with ExitStack() as stack:
        stack.enter_context(snapshots_in_use(data))
        stack.enter_context(claimed(folder))
        return stack.pop_all()


async def begin(data: Path, session: Session) -> None:
    """Snapshot the files of a new session, so that it can be forked before its first action."""
    history = await history_of(data, session.log)
    with snapshots_in_use(data):
        tree = await asyncio.to_thread(history.untouched)
        async with session.log.lease():
            await session.log.append(SnapshotEvent(tree=tree))


def _state(events: list[Event], session: str, at: int) -> State:
    state = State()
    for event in events:
        state.apply(event)
    if state.forked:
        raise SessionError(f"at event {at} of session {session} children work side by side: fork before or after that")
    return state


def _first_events(state: State, config: SessionConfig, agent: type[Agent], tree: str, note: str) -> list[Event]:
    """Return the fork's first events: its start, its snapshot, observations of abandoned actions, a message."""
    started = config.started(agent.__name__, config.model, config.workspace, resumed=True)
    events: list[Event] = [started, SnapshotEvent(tree=tree)]
    for task in state.tree():
        for action in abandoned_actions(state, task):
            lost = ErrorObservation(content=FORKED, error_id="forked")
            events.append(lost.with_fields(cause=action.id, subtask=task.id))
    if note:
        events.append(MessageAction(content=note, source="environment", subtask=state.active))
    return events


def _note(restored: Restored, at: int) -> str:
    return {"both": "", "files": FILES_ONLY.format(at), "conversation": CONVERSATION_ONLY}[restored]
