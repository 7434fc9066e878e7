"""Forks: a new session from any event of another, with the files as they were then. Nothing of the old one changes."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.errors import WorkspaceError
from handiwork.events.action import AgentState, MessageAction
from handiwork.events.base import Event, Observation
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import SnapshotEvent
from handiwork.log.eventlog import EventLog
from handiwork.log.session import fresh_id
from handiwork.log.store import Store
from handiwork.session.open import Opened, Setup, SetupError, session_dir, setup_of, started, stored
from handiwork.session.steps.pending import abandoned
from handiwork.session.storage.layout import claimed, layer_of, snapshots_in_use, untouched
from handiwork.workspace.changes import Change, changes_between
from handiwork.workspace.copy import Workspace
from handiwork.workspace.layers import WORKSPACE_LAYER
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
    """Return the log of a new session that continues from event ``at``, with fields of its Setup changed.

    With "files" it has the whole conversation, but the files of then; with "conversation" the other way round. The
    log gets the session together with the user's ``message``. Raises SetupError, WorkspaceError, LogError.
    """
    events = await log.read()
    if not 0 < at <= len(events):
        raise SetupError(f"session {log.id} has no event {at}: its events are 1 to {len(events)}")
    if at < len(events) and isinstance(events[at - 1], SnapshotEvent):
        at += 1  # it belongs to the observation that follows it
    setup = await _copied(log)
    if "agent" in changes:
        find(changes["agent"])
    setup = Setup.model_validate({**setup.model_dump(), **changes})
    conversation = len(events) if restored == "files" else at
    state = _state(events[:conversation], log.id, conversation)
    tree = _tree_at(events[: len(events) if restored == "conversation" else at], log.id)
    # Its folder comes first: whenever this process is killed, a session that is in the log can be opened.
    new = fresh_id()
    folder = session_dir(data, new)
    with await asyncio.to_thread(_claimed, data, folder):
        try:
            tree = await asyncio.to_thread(_make, session_dir(data, log.id), folder, tree)
        except BaseException:
            await asyncio.to_thread(remove_tree, folder)
            raise
        first = _first_events(state, setup, folder, tree, _said(restored, at))
        for number, event in enumerate(first, conversation + 1):
            state.apply(event.with_fields(id=number))
        if message is not None:
            first.append(MessageAction(content=message, source="user", subtask=state.active))
        shown: AgentState = "paused" if state.agent_state == "running" else state.agent_state
        forking = log.fork(
            conversation,
            agent=setup.agent,
            model=setup.model,
            session_id=new,
            events=first,
            state=shown if message is None else "running",
        )
        return await stored(forking, folder)


def _claimed(data: Path, folder: Path) -> ExitStack:
    """Hold a new fork's folder, and the snapshots that its log will name."""
    with ExitStack() as stack:
        stack.enter_context(snapshots_in_use(data))
        stack.enter_context(claimed(folder))
        return stack.pop_all()


async def begin(data: Path, opened: Opened) -> None:
    """Snapshot the files of a new session, so that it can be forked before its first action."""
    folder = session_dir(data, opened.id)
    with snapshots_in_use(data):
        tree = await asyncio.to_thread(untouched, folder, Workspace.load(folder))
        async with opened.log.lease():
            await opened.log.append(SnapshotEvent(tree=tree))


async def changes_from_to(data: Path, log: EventLog, first: int | None, last: int | None) -> list[Change]:
    """Return how the files after event ``last`` differ from those after ``first``; None is the end and the beginning.

    Raises SetupError, WorkspaceError.
    """
    await _copied(log)
    events = await log.read()
    folder = session_dir(data, log.id)

    def compare() -> list[Change]:
        workspace = Workspace.load(folder)
        sides: list[list[Path]] = []
        for at in (first or 0, len(events) if last is None else last):
            tree = _tree_at(events[:at], log.id)
            layer = layer_of(folder, replace(workspace, tree=tree))
            sides.append([layer / WORKSPACE_LAYER] if layer else [])
        return changes_between(workspace, *sides)

    with snapshots_in_use(data):
        return await asyncio.to_thread(compare)


async def tree_after(log: EventLog, at: int) -> str:
    """Return the snapshot of the files as they were after event ``at``, "" for those of the beginning.

    Raises SetupError, WorkspaceError.
    """
    await _copied(log)
    return _tree_at((await log.read(limit=at)) if at else [], log.id)


async def _copied(log: EventLog) -> Setup:
    setup = await setup_of(log)
    if setup.in_place or setup.sandbox == "none":
        raise SetupError(f"session {log.id} does not work on a copy in a sandbox, so its earlier files are not kept")
    return setup


def _state(events: list[Event], session: str, at: int) -> State:
    state = State()
    for event in events:
        state.apply(event)
    if state.forked:
        raise SetupError(f"at event {at} of session {session} children work side by side: fork before or after that")
    return state


def _tree_at(events: list[Event], session: str) -> str:
    """Return the tree of the last snapshot, "" where the files still are as they were at the beginning."""
    ran = {event.id for event in events if getattr(event, "runnable", False)}
    for event in reversed(events):
        if isinstance(event, SnapshotEvent):
            if not event.tree:
                raise WorkspaceError(f"the files could not be kept at event {event.id}: {event.problem}")
            return event.tree
    if any(isinstance(event, Observation) and event.cause in ran for event in events):
        raise WorkspaceError(f"session {session} keeps no snapshots, so its earlier files are not known")
    return ""


def _make(old: Path, new: Path, tree: str) -> str:
    """Create the folder of a fork and return its initial tree."""
    workspace = Workspace.load(old)
    workspace = replace(workspace, tree=tree or untouched(new, workspace))
    workspace.save(new)
    layer_of(new, workspace)
    return workspace.tree


def _first_events(state: State, setup: Setup, folder: Path, tree: str, said: str) -> list[Event]:
    """Return the fork's first events: its start, its snapshot, observations of abandoned actions, a message."""
    events: list[Event] = [started(setup, folder, setup.model, resumed=True), SnapshotEvent(tree=tree)]
    for task in state.tree():
        for action in abandoned(state, task):
            lost = ErrorObservation(content=FORKED, error_id="forked")
            events.append(lost.with_fields(cause=action.id, subtask=task.id))
    if said:
        events.append(MessageAction(content=said, source="environment", subtask=state.active))
    return events


def _said(restored: Restored, at: int) -> str:
    return {"both": "", "files": FILES_ONLY.format(at), "conversation": CONVERSATION_ONLY}[restored]
