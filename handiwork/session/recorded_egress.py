"""Record the network requests of a session's sandboxes in its log."""

from __future__ import annotations

from collections.abc import Callable, Collection

from handiwork.events.record import EgressEvent
from handiwork.log.errors import LeaseLost
from handiwork.log.eventlog import EventLog
from handiwork.sandbox.egress.proxy import Egress


def recorded(log: EventLog, allowed: Callable[[], Collection[str]], subtask: int = 0) -> Egress:
    """Return the egress of a sandbox, which appends every decision to the log before the decision takes effect.

    ``allowed`` returns the hosts that the user allows at that moment; the sandbox belongs to ``subtask``.
    """

    async def record(event: EgressEvent) -> bool:
        try:
            await log.append(event.with_fields(subtask=subtask))
        except LeaseLost:
            return False  # a program in the background goes on while nobody runs the session
        return True

    return Egress(allowed, record)
