"""Connections that hold a place without a complete request: they end after a time, and give way to new ones.

uvicorn has no time limit for a request's head or body. Without one, programs that need no token can hold every
connection that the process may have, and nobody else gets an answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS = 10.0
"""Seconds in which the head of a request has to be complete, and in which an answer's unread body may still come."""

BODY_SECONDS, BODY_BYTES = 10.0, 10_000
"""A body that brings fewer bytes in so many seconds, while the server reads it, is not waited for."""

WAITING, WAITING_OF_PEER = 128, 64
"""Connections without a complete request: in all, and of one address."""


class Waiting:
    """The connections of one server that may be closed for a new one, the oldest first."""

    def __init__(self) -> None:
        self._peers: dict[LimitedProtocol, str] = {}
        self._count: Counter[str] = Counter()

    def add(self, connection: LimitedProtocol, peer: str) -> None:
        """Add a connection, and close another where there are too many."""
        self._peers[connection] = peer
        self._count[peer] += 1
        if self._count[peer] > WAITING_OF_PEER:
            next(one for one, its_peer in self._peers.items() if its_peer == peer).end()
        elif len(self._peers) > WAITING:
            next(iter(self._peers)).end()

    def discard(self, connection: LimitedProtocol) -> None:
        """Take a connection out, if it is among these."""
        if (peer := self._peers.pop(connection, None)) is not None:
            self._count[peer] -= 1
            if not self._count[peer]:
                del self._count[peer]


class LimitedProtocol(H11Protocol):
    """An HTTP connection whose requests have to come in time; ``waiting`` is that of its server."""

    waiting: Waiting

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._phase: tuple[str, object] = ("", None)
        self._received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as in uvicorn)
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._follow()

    def data_received(self, data: bytes) -> None:
        """Take in what arrived."""
        self._received += len(data)
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the end of this one's body."""
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the connection's place."""
        self._stop()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Leave the connection to the WebSocket: from its handshake on it has limits of its own."""
        self._stop()
        super().handle_websocket_upgrade(event)

    def end(self) -> None:
        """Close the connection at once."""
        self._stop()
        self.transport.abort()

    def _follow(self) -> None:
        """Set the time limit anew where the connection now waits for something else."""
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
        before = self._received

        def check() -> None:
            if self._received - before < BODY_BYTES and not self.flow.read_paused:
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
    """Return the protocol for one server, whose connections share their limits."""
    return type("LimitedProtocolOfOneServer", (LimitedProtocol,), {"waiting": Waiting()})
