"""The user's own terminal in a session's sandbox, over a WebSocket. It is not part of the session's log.

The page sends typed bytes as binary messages, and JSON: {"rows", "columns"} is a new size, {"shown": N} reports that
the page has shown N more bytes. The server sends output as binary messages, {"ready": true} once the shell runs, and
{"error": TEXT} before it closes the connection because of a problem.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import Field, TypeAdapter, ValidationError
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from handiwork.errors import HandiworkError
from handiwork.log.errors import SessionMissing
from handiwork.server.operations import explain
from handiwork.server.schemas.sessions import Shape
from handiwork.server.supervisor import SessionSupervisor
from handiwork.tasks import run_until_one_ends

if TYPE_CHECKING:
    from handiwork.session.session import Session

ENDED, MISSING, NOT_RUNNING, WRONG = 1000, 4404, 4409, 4422
"""WebSocket close codes: the shell ended, no such session, its sandbox does not run here, an invalid message."""

WINDOW = 1 << 20
"""Bytes of output that the page may still have to show; then the program waits, and Ctrl-C stops it at once."""


class TerminalSize(Shape):
    """The rows and columns of a terminal."""

    rows: int = Field(ge=1, le=1000)
    columns: int = Field(ge=1, le=1000)


class TerminalQuery(TerminalSize):
    """A new terminal; with ``start``, a sandbox that does not run is started for it."""

    start: bool = False


class ShownBytes(Shape):
    """The number of bytes of output that the page has shown since its last such message."""

    shown: int = Field(ge=0)


_MESSAGE: TypeAdapter[TerminalSize | ShownBytes] = TypeAdapter(TerminalSize | ShownBytes)


class _Window:
    """The output that the page has not shown yet."""

    def __init__(self) -> None:
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    def change(self, size: int) -> None:
        """Count bytes that were sent, or, negative, that were shown."""
        self._bytes = max(0, self._bytes + size)
        (self._room.set if self._bytes < WINDOW else self._room.clear)()

    async def wait(self) -> None:
        """Wait until the page may be sent more."""
        await self._room.wait()


def route(supervisor: Callable[[], SessionSupervisor]) -> WebSocketRoute:
    """Return the WebSocket route of terminals."""

    async def open_terminal(websocket: WebSocket) -> None:
        await websocket.accept()
        with suppress(WebSocketDisconnect, RuntimeError):  # the page was closed during a send
            try:
                query = TerminalQuery.model_validate(dict(websocket.query_params))
                log = await supervisor().store.log(websocket.path_params["session"])
                async with supervisor().attached(log, start=query.start) as session:
                    await _run(websocket, session, query)
                await websocket.close(ENDED)
            except ValidationError as error:
                await _refuse(websocket, WRONG, explain(error))
            except SessionMissing as error:
                await _refuse(websocket, MISSING, str(error))
            except HandiworkError as error:
                await _refuse(websocket, NOT_RUNNING, str(error))

    return WebSocketRoute("/api/sessions/{session}/terminal", open_terminal)


async def _run(websocket: WebSocket, session: Session, size: TerminalSize) -> None:
    """Connect the page with a new shell until one of them ends. Raises SandboxError, ValidationError."""
    sandbox = await session.sandbox()
    async with sandbox.terminal((size.rows, size.columns)) as terminal:
        await websocket.send_text(json.dumps({"ready": True}))
        window = _Window()

        async def show() -> None:
            while data := await terminal.read():
                await websocket.send_bytes(data)
                window.change(len(data))
                await window.wait()

        async def take_input() -> None:
            while (message := await websocket.receive())["type"] != "websocket.disconnect":
                if data := message.get("bytes"):
                    await terminal.write(data)
                elif text := message.get("text"):
                    match _MESSAGE.validate_json(text):
                        case TerminalSize(rows=rows, columns=columns):
                            await terminal.resize((rows, columns))
                        case ShownBytes(shown=shown):
                            window.change(-shown)

        await run_until_one_ends(show(), take_input())


async def _refuse(websocket: WebSocket, code: int, problem: str) -> None:
    await websocket.send_text(json.dumps({"error": problem}))
    await websocket.close(code)
