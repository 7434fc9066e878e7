"""A connection to the browser's developer tools besides Playwright's, which runs many calls at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from playwright.async_api import Page
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

Answer = dict[str, Any]

_ATTACHING = 100
"""Times 20 ms: the time in which the browser must report an existing frame."""


class DevtoolsError(Exception):
    """The browser refused a call, or the call's target is gone."""


@dataclass(frozen=True, eq=False)
class CDPSession:
    """The developer tools of one target: a page, or a frame with its own process."""

    devtools: Devtools
    id: str
    target: str

    async def call(self, method: str, **parameters: Any) -> Answer:
        """Call a method of the protocol and return its result. Raises DevtoolsError."""
        return await self.devtools.call(method, parameters, self.id)


class Devtools:
    """One connection to one browser. Create it with ``connect``."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._waiting: dict[int, tuple[str | None, asyncio.Future[Answer]]] = {}
        self._pages: WeakKeyDictionary[Page, CDPSession] = WeakKeyDictionary()
        self._frames: dict[str, dict[str, CDPSession]] = {}
        self._closed: str | None = None
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, port: int) -> Devtools:
        """Connect to the browser with this ``--remote-debugging-port``. Raises OSError."""
        url: str = (await asyncio.to_thread(_about, port))["webSocketDebuggerUrl"]
        try:
            return cls(await connect(url, compression=None, proxy=None, ping_interval=None, max_size=None))
        except InvalidHandshake as error:
            raise ConnectionError(str(error)) from error

    async def call(self, method: str, parameters: Answer, session: str | None = None) -> Answer:
        """Call a method of the protocol, in the session with this id, and return its result. Raises DevtoolsError."""
        if self._closed:
            raise DevtoolsError(self._closed)
        self._number += 1
        number = self._number
        request = {"id": number, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = session, answered
        try:
            with contextlib.suppress(ConnectionClosed):  # the reader reports it
                await self._socket.send(json.dumps(request))
            return await answered
        finally:
            self._waiting.pop(number, None)

    async def session(self, page: Page) -> CDPSession:
        """Return the session of a page, which is opened only once. Raises DevtoolsError."""
        if page not in self._pages:
            playwrights: Any = await page.context.new_cdp_session(page)
            target: str = (await playwrights.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
            await playwrights.detach()
            opened = await self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
            self._pages[page] = CDPSession(self, opened["sessionId"], target)
            await self._attach(self._pages[page])
        return self._pages[page]

    async def frame(self, session: CDPSession, frame: str) -> CDPSession | None:
        """Return the session of a frame directly below this target that has its own process; None if none appears."""
        for _ in range(_ATTACHING):
            for found in self._frames.get(session.id, {}).values():
                if found.target == frame:
                    return found
            await asyncio.sleep(0.02)
        return None

    async def close(self) -> None:
        """Close the connection; the browser keeps running."""
        await self._socket.close()
        await self._reading

    async def _attach(self, session: CDPSession) -> None:
        await session.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                self._take(json.loads(message))
        except ConnectionClosed as error:
            self._end(f"the browser's developer tools are gone: {error}")
        finally:
            self._end("the connection to the browser's developer tools was closed")

    def _take(self, message: Answer) -> None:
        if "id" in message:
            _, answered = self._waiting.get(message["id"], (None, None))
            if answered is None or answered.done():
                return
            if "error" in message:
                answered.set_exception(DevtoolsError(str(message["error"].get("message", message["error"]))))
            else:
                answered.set_result(message["result"])
        elif message["method"] == "Target.attachedToTarget":
            self._attached(message.get("sessionId", ""), message["params"])
        elif message["method"] == "Target.detachedFromTarget":
            self._detached(message.get("sessionId", ""), message["params"])

    def _attached(self, parent: str, event: Answer) -> None:
        target = event["targetInfo"]
        if target["type"] == "iframe":
            session = CDPSession(self, event["sessionId"], target["targetId"])
            self._frames.setdefault(parent, {})[session.id] = session
            attaching = asyncio.ensure_future(self._attach(session))
            # If the frame is already gone, the result does not matter.
            attaching.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _detached(self, parent: str, event: Answer) -> None:
        self._frames.pop(event["sessionId"], None)
        self._frames.get(parent, {}).pop(event["sessionId"], None)
        self._fail("the page or frame is gone", lambda session: session == event["sessionId"])

    def _end(self, why: str) -> None:
        self._closed = self._closed or why
        self._fail(self._closed, lambda _: True)

    def _fail(self, why: str, whose: Callable[[str | None], bool]) -> None:
        for session, answered in self._waiting.values():
            if whose(session) and not answered.done():
                answered.set_exception(DevtoolsError(why))


def _about(port: int) -> Answer:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"http://127.0.0.1:{port}/json/version", timeout=10) as answer:
        return json.load(answer)
