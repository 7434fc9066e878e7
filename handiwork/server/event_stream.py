"""The WebSockets: a session's events in order, each once, and changes to the list of sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from handiwork.log.errors import LogError, SessionMissing
from handiwork.log.eventlog import EventLog
from handiwork.server.api.sessions import row, view
from handiwork.server.schemas.sessions import LARGEST
from handiwork.server.supervisor import SessionSupervisor
from handiwork.tasks import run_until_one_ends

PAGE = 200
LIST_SECONDS = STATE_SECONDS = 0.25
"""Seconds between two updates to followers of the list, and between two states of a session."""

PROCESS_SECONDS = 2
"""Seconds between two checks which process runs a session: a killed one logs nothing."""

MISSING, WRONG, FAILED = 4404, 4422, 1011
"""WebSocket close codes: no such session, an invalid cursor, a failure of the log."""


def routes(supervisor: Callable[[], SessionSupervisor]) -> list[WebSocketRoute]:
    """Return the WebSocket routes."""

    async def follow_session(websocket: WebSocket) -> None:
        await websocket.accept()
        after = websocket.query_params.get("after", "0")
        if not after.isascii() or not after.isdigit() or int(after[:20]) > LARGEST:
            await websocket.close(WRONG, "after must be the id of the last event you have")
            return
        with suppress(WebSocketDisconnect, RuntimeError):  # the client disconnected during a send
            try:
                log = await supervisor().store.log(websocket.path_params["session"])
                sent = asyncio.Event()
                events = _events(supervisor(), websocket, log, int(after), sent)
                await run_until_one_ends(
                    _wait_for_disconnect(websocket), events, _states(supervisor(), websocket, log, sent)
                )
            except SessionMissing as error:
                await websocket.close(MISSING, str(error)[:100])
            except LogError as error:
                await websocket.close(FAILED, str(error)[:100])

    async def follow_list(websocket: WebSocket) -> None:
        await websocket.accept()
        with suppress(WebSocketDisconnect, RuntimeError):
            try:
                await run_until_one_ends(_wait_for_disconnect(websocket), _list(supervisor(), websocket))
            except LogError as error:
                await websocket.close(FAILED, str(error)[:100])

    return [
        WebSocketRoute("/api/sessions/{session}/follow", follow_session),
        WebSocketRoute("/api/follow", follow_list),
    ]


async def _wait_for_disconnect(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


async def _states(supervisor: SessionSupervisor, websocket: WebSocket, log: EventLog, sent: asyncio.Event) -> None:
    """Send the session's state now, and again soon after events are ``sent`` or its process has ended."""
    last = ""
    while True:
        sent.clear()
        shown = await view(supervisor, log)
        if (text := shown.model_dump_json()) != last:
            await websocket.send_text(f'{{"state":{text}}}')
            last = text
        await asyncio.sleep(STATE_SECONDS)
        elsewhere = shown.run_by is not None and not shown.run_by.here
        with suppress(TimeoutError):
            async with asyncio.timeout(PROCESS_SECONDS if elsewhere or shown.interrupted else None):
                await sent.wait()


async def _events(
    supervisor: SessionSupervisor, websocket: WebSocket, log: EventLog, after: int, sent: asyncio.Event
) -> None:
    """Send every event after ``after``, with live output between them; slow clients miss live output.

    Sets ``sent`` when the client has all events so far.
    """
    woken, head = asyncio.Event(), after

    async def listen() -> None:
        nonlocal head
        async for newest in log.heads():
            head = newest
            woken.set()

    with supervisor.channels.joined(log.id, woken) as backlog:
        listener = asyncio.create_task(listen())
        listener.add_done_callback(lambda _: woken.set())
        try:
            while True:
                first = after
                while after < head:
                    if not (texts := await log.texts(after, limit=PAGE)):
                        break
                    for text in texts:
                        await _send(websocket, backlog.take(after))
                        await websocket.send_text(text)
                        after += 1
                await _send(websocket, backlog.take(after))
                if after > first:
                    sent.set()
                if listener.done():
                    listener.result()
                    return
                await woken.wait()
                woken.clear()
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)


async def _send(websocket: WebSocket, messages: list[dict[str, Any]]) -> None:
    for message in messages:
        await websocket.send_text(json.dumps(message))


async def _list(supervisor: SessionSupervisor, websocket: WebSocket) -> None:
    """Send sessions as they change or are interrupted, and the ids of deleted ones."""
    since, updates, deleted_count = datetime.now(UTC).timestamp(), dict[str, datetime](), len(supervisor.deleted)
    interrupted = set(await supervisor.store.interrupted_ids())
    await websocket.send_text(json.dumps({"ready": True}))
    while True:
        changed = await supervisor.store.changed(since)
        for info in changed:
            if updates.get(info.id) != info.updated:
                await websocket.send_text(f'{{"session":{(await row(supervisor, info)).model_dump_json()}}}')
        if changed:
            since = changed[-1].updated.timestamp()
            updates = {info.id: info.updated for info in changed}
        now_interrupted = set(await supervisor.store.interrupted_ids())
        for session in now_interrupted - interrupted:
            info = await (await supervisor.store.log(session)).info()
            await websocket.send_text(f'{{"session":{(await row(supervisor, info)).model_dump_json()}}}')
        interrupted = now_interrupted
        for session in supervisor.deleted[deleted_count:]:
            await websocket.send_text(json.dumps({"deleted": session}))
        deleted_count = len(supervisor.deleted)
        await asyncio.sleep(LIST_SECONDS)
