"""What the exit codes of ``handiwork`` mean."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command."""

    FINISHED = 0
    FAILED = 1
    USAGE = 2
    LIMIT = 3
    INFRASTRUCTURE = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141
