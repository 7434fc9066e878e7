"""The errors that a user can act on: one tree, each class with its exit code and HTTP status."""

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


class HandiworkError(Exception):
    """Base of all errors that a user can act on; the text names the problem and the remedy."""

    exit_code = Exit.USAGE
    status = 422


class WorkspaceError(HandiworkError):
    """A workspace cannot be copied, read or applied."""

    status = 409


class DiskError(WorkspaceError):
    """A disk is full or fails; nothing was changed."""

    exit_code = Exit.INFRASTRUCTURE
    status = 507


class SandboxError(HandiworkError):
    """The sandbox could not be started or was lost."""

    exit_code, status = Exit.INFRASTRUCTURE, 503


class BrowserError(HandiworkError):
    """The sandbox has no browser, or a command of it failed."""
