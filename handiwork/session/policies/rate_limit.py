"""Rate limits: the requests and tokens a minute that a model may take, kept for all sessions of this process."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from handiwork.events.record import ThrottledEvent

WINDOW = 60.0
"""Seconds in which calls count."""


@dataclass(frozen=True)
class RateLimit:
    """The most ``requests`` and ``tokens`` (in and out) of one model in any 60 s; None means no limit."""

    requests: int | None = None
    tokens: int | None = None

    def exceeded(self, requests: int, tokens: int) -> str:
        """Return the limit that forbids another call after these; "" if none does."""
        if self.requests is not None and requests >= self.requests:
            return f"{self.requests} requests a minute"
        if self.tokens is not None and tokens > self.tokens:
            return f"{self.tokens} tokens a minute"
        return ""


@dataclass
class Call:
    """A call of a model: its start in seconds of the window's clock, and its tokens, until it ends an estimate."""

    start: float
    tokens: int


@dataclass
class CallWindow:
    """The calls of one model in the last WINDOW seconds of ``clock``."""

    clock: Callable[[], float] = time.monotonic
    calls: deque[Call] = field(default_factory=deque[Call])
    last: Call | None = None

    def wait(self, limit: RateLimit) -> tuple[float, str]:
        """Return the seconds until another call fits the limit, and the limit it waits for; 0 and "" if it fits now.

        A call is taken to need as many tokens as the last one. One that is larger than the limit goes alone.
        """
        now = self.clock()
        while self.calls and self.calls[0].start <= now - WINDOW:
            self.calls.popleft()
        requests, tokens = len(self.calls), sum(call.tokens for call in self.calls) + self._estimate
        seconds, reason = 0.0, ""
        for call in self.calls:
            if not (exceeded := limit.exceeded(requests, tokens)):
                break
            seconds, reason = call.start + WINDOW - now, reason or exceeded
            requests, tokens = requests - 1, tokens - call.tokens
        return seconds, reason

    def begin(self) -> Call:
        """Count a call that begins now, and return it; set its ``tokens`` once they are known."""
        call = self.last = Call(self.clock(), self._estimate)
        self.calls.append(call)
        return call

    @property
    def _estimate(self) -> int:
        return self.last.tokens if self.last is not None else 0


_WINDOWS: defaultdict[str, CallWindow] = defaultdict(CallWindow)


def window_of(model: str) -> CallWindow:
    """Return the model's window, which all sessions of this process share."""
    return _WINDOWS[model]


def throttled(model: str, seconds: float, reason: str) -> ThrottledEvent:
    """Return the event that tells the user about a wait."""
    text = f"{model} may take {reason}: the next call waits {seconds:.0f} s"
    return ThrottledEvent(model=model, seconds=round(seconds, 1), content=text)
