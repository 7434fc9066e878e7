"""The errors of the log.

LogError                 the database or a file failed; nothing of the operation is stored
├── SessionMissing       no session has this id, or several ids begin with it
├── SessionShared        the session cannot be deleted: forks read its events
├── LeaseHeld            another process, or another task of this one, runs the session
├── LeaseLost            only the process that runs the session may append this event
└── BlobMissing          no blob has this digest
"""

from __future__ import annotations

from handiwork.errors import Exit, HandiworkError


class LogError(HandiworkError):
    """The operation failed and stored nothing; the message gives the reason and the remedy."""

    exit_code, status = Exit.INFRASTRUCTURE, 503


class SessionMissing(LogError):  # noqa: N818
    """No session has this id, or several ids begin with it."""

    exit_code, status = Exit.USAGE, 404


class SessionShared(LogError):  # noqa: N818
    """The session cannot be deleted: forks read its events."""

    status = 409


class LeaseHeld(LogError):  # noqa: N818
    """Another owner runs the session; ``host`` and ``pid`` identify its process."""

    exit_code, status = Exit.USAGE, 409

    def __init__(self, session: str, host: str, pid: int) -> None:
        super().__init__(
            f"session {session} is run by process {pid} on {host}: "
            "wait until it ends, stop it, or fork the session and run the fork"
        )
        self.host = host
        self.pid = pid


class LeaseLost(LogError):  # noqa: N818
    """This process does not hold the session's lease, so it may append only the user's events."""


class BlobMissing(LogError):  # noqa: N818
    """No blob has this digest."""

    status = 404


def deleted(session: str) -> SessionMissing:
    """Return the error for a session that has been deleted."""
    return SessionMissing(f"session {session} has been deleted")


def damaged(session: str, reason: str) -> LogError:
    """Return the error for a session whose row in the log is invalid."""
    return LogError(
        f"the log's row of session {session} is damaged ({reason}): restore the log from a backup, "
        "or delete the session; others are not affected"
    )
