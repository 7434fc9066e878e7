"""The transient channel beside the log: live output that is shown and never stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from handiwork.events.base import Event


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the model's reply to a task (0) or subtask as it arrives."""

    text: str
    subtask: int = 0


@dataclass(frozen=True, slots=True)
class OutputDelta:
    """A piece of the output of the action with this id as it arrives."""

    action: int
    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """The reason why the session waits, like "starting the sandbox"."""

    text: str


Observer = Callable[[Event | TextDelta | OutputDelta | Status], None]
"""Called on the event loop with every event as it is folded, and every piece of live output; must not block."""
