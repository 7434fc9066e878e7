"""Requests and responses of pull requests from a session's changes; on GitLab they are merge requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from handiwork.server.schemas.sessions import Line, Shape, Text

ForgeKind = Literal["github", "gitlab"]


class PullRequestProposal(Shape):
    """The request that the session's changes would make in ``repository`` on ``host``.

    ``account`` is the forge's name of the token's owner, null without a token that works; ``problem`` then tells why.
    ``base`` may be "" then; ``bases`` are likely branches to merge into. ``variable`` is the environment variable
    whose token the forge gets, "" for a host that the settings do not name. ``files`` are the changed paths,
    ``warnings`` has a sentence for each other thing in the request, or left out of it.
    """

    forge: ForgeKind
    noun: str
    host: str
    repository: str
    variable: str
    account: str | None
    problem: str
    title: str
    body: str
    base: str
    bases: list[str]
    files: list[str]
    warnings: list[str]


class NewPullRequest(Shape):
    """A request to open; ``base`` "" is the repository's default branch, and nobody can merge a draft."""

    title: Annotated[Line, Field(min_length=1, max_length=255)]
    body: Annotated[Text, Field(max_length=65_000)] = ""
    base: Annotated[Line, Field(max_length=255)] = ""
    draft: bool = False


class OpenPullRequest(Shape):
    """An open request at ``url``; unless it is ``created`` now, it keeps the title and body that it had.

    ``warnings`` has a sentence for each change of the session that it lacks.
    """

    noun: str
    number: int
    url: str
    branch: str
    created: bool
    warnings: list[str]


class ForgeToken(Shape):
    """A token for the forge of the session's workspace; with ``keep`` also for later servers and the command line."""

    token: Annotated[Line, Field(min_length=1)]
    keep: bool = False


class ForgeAccount(Shape):
    """The token's owner on the forge; ``file`` is the file that keeps the token, if any."""

    account: str
    file: str | None
