"""Operations on sessions: create, list, show, rename, fork and delete them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic_core
from starlette.responses import Response

from handiwork.agents.plan import Task
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.codec import to_dict
from handiwork.log.eventlog import EventLog
from handiwork.log.lists.pages import Cursor
from handiwork.log.session import SessionInfo
from handiwork.process import Process
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.sessions import (
    Cost,
    EventPage,
    EventsQuery,
    ListQuery,
    NewFork,
    NewSession,
    Outline,
    OutlineQuery,
    PendingQuestion,
    PlanTask,
    RefusedHost,
    RunBy,
    SessionChange,
    SessionPage,
    SessionRow,
    SessionView,
    Subtask,
    Success,
    Tree,
    UploadedImage,
)
from handiwork.server.supervisor import SessionSupervisor
from handiwork.session.approval.rules import rule_for
from handiwork.session.config import SessionConfig, agent_name, title_of
from handiwork.session.storage import gc
from handiwork.session.time_travel import fork as forks
from handiwork.session.user_events import actions_to_approve, approval_reasons
from handiwork.settings import load, model_name


async def create_session(call: OperationCall[None, NewSession]) -> SessionView:
    """Make a session with a copy of the workspace and start its task."""
    new = call.body
    limits = new.limits.model_dump(exclude_unset=True) if new.limits is not None else {}
    flags: dict[str, Any] = {
        "agent": new.agent,
        "model": new.model,
        "base_url": new.base_url,
        "image": new.image,
        "allow_net": new.allow_net,
        "confirmation": new.confirmation,
        "plan_mode": new.plan_mode,
        "secrets": new.secrets,
    }
    config = SessionConfig.of(load(flags), Path(new.workspace))
    if new.limits is not None:
        config = config.model_copy(update={"limits": config.limits.model_copy(update=limits)})
    check_images(call.supervisor, new.images)
    message = MessageAction(content=new.task, images=tuple(image.part() for image in new.images))
    log = await call.supervisor.create(config, message, (new.title or "").strip() or title_of(new.task))
    return await view(call.supervisor, log)


async def list_sessions(call: OperationCall[ListQuery, None]) -> SessionPage:
    """List sessions, those that need the user before the others, both newest first."""
    query = call.query
    after = Cursor.parse(query.before) if query.before is not None else None
    found = await call.supervisor.store.waiting_first(query.limit, after, query.q, query.state, query.archived)
    rows = [await row(call.supervisor, info) for info in found.sessions]
    return SessionPage(sessions=rows, next=str(found.next) if found.next else None, waiting=found.waiting)


async def show_session(call: OperationCall[None, None]) -> SessionView:
    """Return a session without its events."""
    return await view(call.supervisor, await call.log())


async def change_session(call: OperationCall[None, SessionChange]) -> SessionView:
    """Change a session's title, or archive it: lists then leave it out, unless they are asked for it."""
    log = await call.log()
    await call.supervisor.store.update(log.id, title=call.body.title, archived=call.body.archived)
    return await view(call.supervisor, log)


async def delete_session(call: OperationCall[None, None]) -> Success:
    """Delete a session that is not running, with its files."""
    supervisor = call.supervisor
    log = await call.log()
    await supervisor.release(log)
    await gc.delete_session(supervisor.store, supervisor.data, log.id)
    supervisor.forget(log.id)
    return Success()


async def list_events(call: OperationCall[EventsQuery, None]) -> Response:
    """Return events of a session, ascending: the newest, those before one, or those after one."""
    query = call.query
    log = await call.log()
    head = await log.head()
    before = query.before if query.before is not None else None if query.after is not None else head + 1
    texts = await log.texts(query.after or 0, before, query.limit)
    return Response(f'{{"events":[{",".join(texts)}],"head":{head}}}', media_type="application/json")


OUTLINED = 10_000
"""The most events of an outline."""


async def show_outline(call: OperationCall[OutlineQuery, None]) -> Outline:
    """Return the types and causes of events, which fit into one answer where the events do not."""
    log = await call.log()
    head = await log.head()
    texts = await log.texts(call.query.after, limit=OUTLINED)
    return await asyncio.to_thread(_outline, call.query.after + 1, texts, head)


def _outline(first: int, texts: list[str], head: int) -> Outline:
    names: dict[str, int] = {}
    types: list[int] = []
    causes: list[int | None] = []
    failed: list[int] = []
    for number, text in enumerate(texts, first):
        event: dict[str, Any] = pydantic_core.from_json(text)
        types.append(names.setdefault(str(event.get("type")), len(names)))
        cause = event.get("cause")
        causes.append(cause if isinstance(cause, int) else None)  # a newer version's event may have anything
        if _is_failure(event):
            failed.append(number)
    return Outline(first=first, names=list(names), types=types, causes=causes, failed=failed, head=head)


def _is_failure(event: dict[str, Any]) -> bool:
    return event.get("type") in ("ErrorObservation", "LoopEvent") or any(
        event.get(name) for name in ("exit_code", "error", "last_action_error")
    )


async def fork_session(call: OperationCall[None, NewFork]) -> SessionView:
    """Make a session that continues from an event of this one, which stays unchanged."""
    new, supervisor = call.body, call.supervisor
    log = await call.log()
    changes: dict[str, Any] = {}
    if new.model is None and new.base_url is not None:
        raise RequestRefusedError(422, "a base URL needs a model")
    if new.agent is not None:
        changes["agent"] = agent_name(new.agent)
    if new.model is not None:
        changes |= {"model": model_name(new.model), "base_url": new.base_url}
    fork_log = await forks.fork(supervisor.store, supervisor.data, log, new.at, new.restore, new.message, **changes)
    if new.message is not None:
        supervisor.mark(fork_log.id)
        await supervisor.wake(fork_log.id)
    return await view(supervisor, fork_log)


async def show_tree(call: OperationCall[None, None]) -> Tree:
    """Return a session with its ancestors and all their forks."""
    log = await call.log()
    family = await call.supervisor.store.family(log.id)
    return Tree(sessions=[await row(call.supervisor, info) for info in family])


def check_images(supervisor: SessionSupervisor, images: tuple[UploadedImage, ...]) -> None:
    """Raise BlobMissing for a picture that was not uploaded."""
    for image in images:
        supervisor.store.blobs.hold(image.blob)


async def row(supervisor: SessionSupervisor, info: SessionInfo) -> SessionRow:
    """Return the row of a session in lists."""
    return SessionRow.of(info, await supervisor.interrupted(info))


async def view(supervisor: SessionSupervisor, log: EventLog) -> SessionView:
    """Return a session's view."""
    state = await supervisor.state(log)
    holder, info = await log.holder(), await log.info()
    interrupted = await supervisor.interrupted(_updated(info, state))
    why: dict[int, str] = {}
    # New questions may arrive during the wait.
    while new := [action for action in actions_to_approve(state) if action.id not in why]:
        why |= {action.id: "" for action in new} | await approval_reasons(log, new)
    # No await below, so that all fields describe the same moment.
    return SessionView(
        **SessionRow.of(_updated(info, state), interrupted).model_dump(),
        reason=state.change.reason if state.change is not None else None,
        why=state.change.content if state.change is not None else "",
        sandbox=state.sandbox,
        base_url=state.totals.base_url,
        limits=state.limits,
        confirmation=state.totals.confirmation,
        iterations=state.iteration,
        usage=state.usage,
        cost=Cost(usd=state.cost, unpriced=state.unpriced, sources=sorted(state.totals.cost_sources)),
        time=state.time,
        plan=_plan(state.plan.tasks),
        subtasks=[_subtask(child) for child in state.subtasks.values()],
        asked=[
            PendingQuestion(action=to_dict(action), why=why.get(action.id, ""), rule=rule_for(action))
            for action in actions_to_approve(state)
        ],
        rules=list(state.totals.rules),
        network=list(state.totals.network),
        refused=[
            RefusedHost(pattern=pattern, host=event.host, port=event.port, subtask=event.subtask)
            for pattern, event in state.totals.refused.items()
        ],
        plan_mode=bool(state.totals.plan_mode),
        outputs=dict(state.outputs),
        run_by=_runner(holder),
    )


def _updated(info: SessionInfo, state: State) -> SessionInfo:
    """Return the entry with the newer state of the log."""
    if not state.last_id:
        return info
    return replace(info, state=state.agent_state, model=state.model or info.model)


def _runner(holder: Process | None) -> RunBy | None:
    if holder is None:
        return None
    return RunBy(here=holder == Process.this(), host=holder.host, pid=holder.pid)


def _plan(tasks: list[Task]) -> list[PlanTask]:
    return [PlanTask(id=t.id, goal=t.goal, state=t.state, subtasks=_plan(t.subtasks)) for t in tasks]


def _subtask(state: State) -> Subtask:
    return Subtask(
        id=state.id,
        parent=state.parent,
        agent=state.agent,
        state=state.agent_state,
        iterations=state.local_iteration,
        cost=state.local_cost,
        usage=state.local_usage,
        plan=_plan(state.plan.tasks),
    )


async def started_state(supervisor: SessionSupervisor, log: EventLog) -> State:
    """Return a session's state. Raises RequestRefusedError if the session never began."""
    state = await supervisor.state(log)
    if not state.last_id:
        raise RequestRefusedError(409, f"session {log.id} never started: run the task again")
    return state


_AT = "/api/sessions/{session}"
OPERATIONS = (
    Operation("POST", "/api/sessions", create_session, SessionView, body=NewSession, status=201),
    Operation("GET", "/api/sessions", list_sessions, SessionPage, query=ListQuery, refuses=(503,)),
    Operation("GET", _AT, show_session, SessionView),
    Operation("PATCH", _AT, change_session, SessionView, body=SessionChange),
    Operation("DELETE", _AT, delete_session, Success),
    Operation("GET", f"{_AT}/events", list_events, EventPage, query=EventsQuery),
    Operation("GET", f"{_AT}/outline", show_outline, Outline, query=OutlineQuery),
    Operation("POST", f"{_AT}/fork", fork_session, SessionView, body=NewFork, status=201),
    Operation("GET", f"{_AT}/tree", show_tree, Tree),
)
