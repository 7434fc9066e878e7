"""Operations that steer a session: messages, pause and resume, approvals, settings. Each appends events."""

from __future__ import annotations

import asyncio

from handiwork.events.action import AgentState, ChangeAgentStateAction, MessageAction
from handiwork.events.record import SettingsChanged
from handiwork.llm import create as llms
from handiwork.server.api.sessions import check_images, started_state, view
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.sessions import (
    Answer,
    Hosts,
    PlanAcceptance,
    Posted,
    SessionView,
    SettingsChange,
    UserMessage,
)
from handiwork.session.approval.project import Permissions, ProjectPermissions
from handiwork.session.user_events import (
    accepted_plan,
    actions_to_approve,
    approval,
    interrupting,
    is_stuck,
    network_allowed,
    rewind_event,
    running_commands,
)
from handiwork.settings import model_name

ENDED: frozenset[AgentState] = frozenset({"finished", "rejected", "stopped", "awaiting_user_input"})
"""The states from which a session resumes only with a message."""


async def send_message(call: OperationCall[None, UserMessage]) -> Posted:
    """Send a message to the agent, after its current actions or in place of them; this resumes a session."""
    log = await call.log()
    check_images(call.supervisor, call.body.images)
    state = await started_state(call.supervisor, log)
    message = MessageAction(
        content=call.body.content,
        images=tuple(image.part() for image in call.body.images),
        source="user",
        subtask=state.active,
    )
    events = interrupting(message) if call.body.interrupt and state.agent_state == "running" else (message,)
    return Posted(event=await call.supervisor.say(log, *events))


async def start_session(call: OperationCall[None, None]) -> SessionView:
    """Resume a session that was paused or failed; the same as resume."""
    return await resume_session(call)


async def resume_session(call: OperationCall[None, None]) -> SessionView:
    """Resume a session that was paused or failed; one that ended or asked a question needs a message."""
    log = await call.log()
    state = (await started_state(call.supervisor, log)).agent_state
    if state in ENDED:
        raise RequestRefusedError(409, f"session {log.id} is {state}: send a message to resume it")
    if state == "awaiting_user_confirmation":
        raise RequestRefusedError(409, f"session {log.id} waits for your approval: approve or reject its actions")
    if state == "running":
        await call.supervisor.wake(log.id)  # its process may be gone
    else:
        await call.supervisor.say(log, ChangeAgentStateAction(agent_state="running", source="user"))
    return await view(call.supervisor, log)


async def pause_session(call: OperationCall[None, None]) -> SessionView:
    """Pause a session at once; the same as interrupt."""
    return await interrupt_session(call)


async def interrupt_session(call: OperationCall[None, None]) -> SessionView:
    """Interrupt the current action and pause the session."""
    log = await call.log()
    if (await started_state(call.supervisor, log)).agent_state == "running":
        await call.supervisor.say(log, ChangeAgentStateAction(agent_state="paused", source="user"))
    return await view(call.supervisor, log)


async def stop_session(call: OperationCall[None, None]) -> SessionView:
    """Stop the current action and close the sandbox; a message resumes the session."""
    log = await call.log()
    await started_state(call.supervisor, log)
    await call.supervisor.say(log, ChangeAgentStateAction(agent_state="stopped", source="user"))
    return await view(call.supervisor, log)


async def answer_action(call: OperationCall[None, Answer]) -> SessionView:
    """Allow or reject an action that waits for approval."""
    log, answer = await call.log(), call.body
    state = await started_state(call.supervisor, log)
    action = next((action for action in actions_to_approve(state) if action.id == answer.action), None)
    if action is None:
        raise RequestRefusedError(409, f"action {answer.action} of session {log.id} does not wait for approval")
    if answer.remember and not answer.allowed:
        raise RequestRefusedError(422, "remember: only an allowed action can be remembered")
    await call.supervisor.say(log, approval(action, answer.allowed, answer.comment, answer.remember))
    return await view(call.supervisor, log)


async def change_session(call: OperationCall[None, SettingsChange]) -> SessionView:
    """Change the session's model, limits, confirmation mode or plan mode, also while it runs."""
    log, change = await call.log(), call.body
    state = await started_state(call.supervisor, log)
    if change == SettingsChange():
        raise RequestRefusedError(422, "it changes nothing: give a model, limits, a confirmation mode or plan_mode")
    if change.model is None and change.base_url is not None:
        raise RequestRefusedError(422, "base_url: a base URL needs a model")
    model = None if change.model is None else model_name(change.model)
    if model is not None:
        await llms.create(model, change.base_url).close()
    limits = None
    if change.limits is not None:  # those left out stay as they are, and null removes one
        limits = state.limits.model_copy(update=change.limits.model_dump(exclude_unset=True))
    await call.supervisor.say(
        log,
        SettingsChanged(
            model=model,
            base_url=change.base_url,
            limits=limits,
            confirmation=change.confirmation,
            plan_mode=change.plan_mode,
            source="user",
        ),
    )
    return await view(call.supervisor, log)


async def allow_hosts(call: OperationCall[None, Hosts]) -> SessionView:
    """Let the sandbox reach more hosts, also while it runs."""
    log = await call.log()
    await started_state(call.supervisor, log)
    try:
        event = network_allowed(call.body.hosts, once=call.body.scope == "once")
    except ValueError as error:
        raise RequestRefusedError(422, f"hosts: {error}") from None
    if not call.body.confirmed and (commands := await running_commands(log)):
        lines = "; ".join(commands)
        raise RequestRefusedError(
            409, f"these commands may be running and could use the hosts unasked; send confirmed to allow it: {lines}"
        )
    if call.body.scope == "project":
        project = ProjectPermissions(call.supervisor.data, (await log.info()).workspace)
        await asyncio.to_thread(project.keep, Permissions(hosts=event.hosts))
    await call.supervisor.say(log, event)
    return await view(call.supervisor, log)


async def accept_plan(call: OperationCall[None, PlanAcceptance]) -> SessionView:
    """Accept the agent's plan: plan mode ends, and the agent carries the plan out."""
    log = await call.log()
    state = await started_state(call.supervisor, log)
    if not state.totals.plan_mode:
        raise RequestRefusedError(409, f"session {log.id} is not in plan mode")
    await call.supervisor.say(log, *accepted_plan(state, call.body.comment))
    return await view(call.supervisor, log)


async def rewind_session(call: OperationCall[None, None]) -> SessionView:
    """Rewind a stuck agent to before its loop and resume it; files stay."""
    log = await call.log()
    state = await started_state(call.supervisor, log)
    if not is_stuck(state):
        raise RequestRefusedError(409, f"session {log.id} is not stuck in a loop")
    await call.supervisor.say(log, rewind_event(state), ChangeAgentStateAction(agent_state="running", source="user"))
    return await view(call.supervisor, log)


_AT = "/api/sessions/{session}"
OPERATIONS = (
    Operation("POST", f"{_AT}/messages", send_message, Posted, body=UserMessage, status=201),
    Operation("POST", f"{_AT}/start", start_session, SessionView),
    Operation("POST", f"{_AT}/resume", resume_session, SessionView),
    Operation("POST", f"{_AT}/pause", pause_session, SessionView),
    Operation("POST", f"{_AT}/interrupt", interrupt_session, SessionView),
    Operation("POST", f"{_AT}/stop", stop_session, SessionView),
    Operation("POST", f"{_AT}/approvals", answer_action, SessionView, body=Answer),
    Operation("POST", f"{_AT}/settings", change_session, SessionView, body=SettingsChange),
    Operation("POST", f"{_AT}/network", allow_hosts, SessionView, body=Hosts),
    Operation("POST", f"{_AT}/plan/accept", accept_plan, SessionView, body=PlanAcceptance),
    Operation("POST", f"{_AT}/rewind", rewind_session, SessionView),
)
