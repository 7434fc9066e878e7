"""Limits on connections without a complete request: they time out, and close to make room for new ones.

uvicorn has no time limit for a request's head or body. Without one, a program without a token could hold every
connection that the process may have, and lock out all other clients.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS = 10.0
"""Seconds for the head of a request to arrive, and for the unread body of an answered request."""

BODY_SECONDS, BODY_BYTES = 10.0, 10_000
"""The server drops a body that brings fewer than BODY_BYTES in BODY_SECONDS while the server reads it."""

WAITING, WAITING_OF_PEER = 128, 64
"""The maximum number of connections without a complete request: in total, and from one address."""


class Waiting:
    """The connections of one server without a complete request, oldest first; new ones may displace them."""

    def __init__(self) -> None:
        self._peers: dict[LimitedProtocol, str] = {}
        self._count: Counter[str] = Counter()

    def add(self, connection: LimitedProtocol, peer: str) -> None:
        """Add a connection; close the oldest if there are too many."""
        self._peers[connection] = peer
        self._count[peer] += 1
        if self._count[peer] > WAITING_OF_PEER:
            next(one for one, its_peer in self._peers.items() if its_peer == peer).end()
        elif len(self._peers) > WAITING:
            next(iter(self._peers)).end()

    def discard(self, connection: LimitedProtocol) -> None:
        """Remove a connection if it is waiting."""
        if (peer := self._peers.pop(connection, None)) is not None:
            self._count[peer] -= 1
            if not self._count[peer]:
                del self._count[peer]


class LimitedProtocol(H11Protocol):
    """An HTTP connection with time limits for its requests; its server's connections share ``waiting``."""

    waiting: Waiting

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._phase: tuple[str, object] = ("", None)
        self._received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as in uvicorn)
        """Start waiting for a request's head."""
        super().connection_made(transport)
        self._follow()

    def data_received(self, data: bytes) -> None:
        """Process received data."""
        self._received += len(data)
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Start waiting for the next request, or for the end of this one's body."""
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the waiting ones."""
        self._stop()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection to the WebSocket, which has its own limits."""
        self._stop()
        super().handle_websocket_upgrade(event)

    def end(self) -> None:
        """Close the connection at once."""
        self._stop()
        self.transport.abort()

    def _follow(self) -> None:
        """Restart the time limit if the connection enters another phase."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        cycle = cast("RequestResponseCycle | None", self.cycle)
        phase = "head"
        if cycle is not None and not cycle.response_complete:
            phase = "body" if cycle.more_body else "answer"
        if (phase, cycle) == self._phase:
            return
        self._stop()
        self._phase = (phase, cycle)
        if phase == "head":
            self._timer = self.loop.call_later(HEAD_SECONDS, self.end)
            self.waiting.add(self, self.client[0] if self.client else "")
        elif phase == "body":
            self._watch_body()

    def _watch_body(self) -> None:
        received = self._received

        def check() -> None:
            if self._received - received < BODY_BYTES and not self.flow.read_paused:
                self.end()
            else:
                self._watch_body()

        self._timer = self.loop.call_later(BODY_SECONDS, check)

    def _stop(self) -> None:
        self.waiting.discard(self)
        self._phase = ("", None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def limited_protocol() -> type[LimitedProtocol]:
    """Return a protocol class for one server, whose connections share their limits."""
    return type("LimitedProtocolOfOneServer", (LimitedProtocol,), {"waiting": Waiting()})
