"""Requests and responses that bring a session's work into the user's directory.

A path is written as git writes it: in quotes, with escapes, if it has a quote or a character that cannot be printed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from handiwork.server.schemas.sessions import Line, Shape


class ApplyConflict(Shape):
    """A path that the session and the user changed differently; ``patch`` is what taking the session's version changes.

    If it cannot be taken (``can_take``), the patch is empty.
    """

    path: str
    reason: str
    can_take: bool
    patch: str


class ApplyPreview(Shape):
    """What an apply would do in ``workspace``; nothing, as long as there are conflicts without an answer.

    ``warnings`` has a sentence for each change that it would skip, ``undoable`` the paths of the last apply.
    ``commits`` tells whether it would bring commits that the repository lacks.
    ``request`` is the word of the remote's forge for a pull request, null without a known forge.
    """

    workspace: str
    in_place: bool
    written: list[str]
    deleted: list[str]
    unchanged: list[str]
    warnings: list[str]
    conflicts: list[ApplyConflict]
    undoable: list[str]
    commits: bool
    request: str | None


class NewApply(Shape):
    """The answers to conflicts by path: take the session's version, or leave the user's."""

    resolutions: Annotated[dict[Line, Literal["take", "leave"]], Field(max_length=10_000)] = Field(default_factory=dict)


class ApplyResult(Shape):
    """What was changed in ``workspace``; ``branch`` has the session's commits, null without any.

    ``warnings`` has a sentence for each change that was skipped, and if the commits could not be brought.
    """

    workspace: str
    written: list[str]
    deleted: list[str]
    unchanged: list[str]
    warnings: list[str]
    branch: str | None


class UndoResult(Shape):
    """The paths that are as before the apply."""

    workspace: str
    restored: list[str]
    deleted: list[str]


class SessionBranch(Shape):
    """The branch that has the session's changes and commits; ``warnings`` has a sentence for each that it lacks."""

    branch: str
    warnings: list[str]
