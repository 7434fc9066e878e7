"""Operations on the rules and hosts that the user has allowed: see them, keep them for the folder, take them back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from handiwork.log.eventlog import EventLog
from handiwork.server.api.sessions import started_state
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.sessions import Permission, PermissionChange, PermissionList
from handiwork.server.supervisor import SessionSupervisor
from handiwork.session.approval.project import Permissions, ProjectPermissions
from handiwork.session.user_events import permissions_revoked


async def list_permissions(call: OperationCall[None, None]) -> PermissionList:
    """List the rules and hosts of a session and those kept for its folder."""
    return await _permissions(call.supervisor, await call.log())


async def keep_permissions(call: OperationCall[None, PermissionChange]) -> PermissionList:
    """Keep rules and hosts of a session for new sessions on its folder."""
    log, change = await call.log(), call.body
    totals = (await started_state(call.supervisor, log)).totals
    if unknown := [*set(change.rules) - set(totals.rules), *set(change.hosts) - set(totals.network)]:
        raise RequestRefusedError(409, f"session {log.id} does not have these permissions: {', '.join(unknown)}")
    project = await _project(call.supervisor, log)
    await asyncio.to_thread(project.keep, Permissions(rules=change.rules, hosts=change.hosts))
    return await _permissions(call.supervisor, log)


async def revoke_permissions(call: OperationCall[None, PermissionChange]) -> PermissionList:
    """Take rules and hosts back, in a session at once and for new sessions on its folder."""
    log, change = await call.log(), call.body
    await started_state(call.supervisor, log)
    permissions = Permissions(rules=change.rules, hosts=change.hosts)
    project = await _project(call.supervisor, log)
    await asyncio.to_thread(project.take_back, permissions)
    await call.supervisor.say(log, permissions_revoked(permissions))
    return await _permissions(call.supervisor, log)


async def _project(supervisor: SessionSupervisor, log: EventLog) -> ProjectPermissions:
    return ProjectPermissions(supervisor.data, (await log.info()).workspace)


async def _permissions(supervisor: SessionSupervisor, log: EventLog) -> PermissionList:
    kept = await asyncio.to_thread((await _project(supervisor, log)).read)
    totals = (await supervisor.state(log)).totals
    return PermissionList(rules=_listed(totals.rules, kept.rules), hosts=_listed(totals.network, kept.hosts))


def _listed(in_force: Iterable[str], kept: Collection[str]) -> list[Permission]:
    given = dict.fromkeys(in_force)
    return [
        Permission(text=text, in_force=text in given, kept=text in kept) for text in {**given, **dict.fromkeys(kept)}
    ]


_AT = "/api/sessions/{session}/permissions"
OPERATIONS = (
    Operation("GET", _AT, list_permissions, PermissionList),
    Operation("POST", f"{_AT}/keep", keep_permissions, PermissionList, body=PermissionChange),
    Operation("POST", f"{_AT}/revoke", revoke_permissions, PermissionList, body=PermissionChange),
)
