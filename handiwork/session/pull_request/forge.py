"""Clients of the two forges: the APIs of GitHub and GitLab, as far as a pull request needs them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, ClassVar, Self, cast
from urllib.parse import quote

import httpx2

from handiwork.errors import Exit, HandiworkError

SECONDS = 30.0
"""Seconds to wait for an answer."""

_DEVELOPER = 30
"""The lowest access level of GitLab that may push."""


class ForgeError(HandiworkError):
    """The forge refuses a request; the text has its own reason, or the remedy."""

    exit_code, status = Exit.FAILED, 409


class TokenError(ForgeError):
    """The token is missing, or the forge does not know it."""


class ForgeUnreachableError(ForgeError):
    """The forge does not answer, or not as its API does."""

    exit_code, status = Exit.INFRASTRUCTURE, 503


@dataclass(frozen=True)
class Draft:
    """A request that is not sent yet, for the branch ``base``; the body is Markdown.

    An ``unfinished`` one is a draft to the forge too: nobody can merge it yet.
    """

    title: str
    body: str
    base: str
    unfinished: bool = False


@dataclass(frozen=True)
class PullRequest:
    """An open request at ``url``; ``head`` is the last commit of its branch."""

    number: int
    url: str
    head: str


class Forge(ABC):
    """The API of one repository of a forge, with a token; use it as a context manager.

    ``web`` is the address of the forge's pages, ``path`` that of the repository below it. Every method raises
    TokenError for a token that the forge does not know, ForgeError and ForgeUnreachableError.
    """

    noun: ClassVar[str]
    """The forge's word for a request."""
    push_user: ClassVar[str]
    """The user name that git takes with a token."""
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, web: str, path: str, token: str) -> None:
        self.web, self.path = web, path
        self.host = web.partition("://")[2]
        agent = f"handiwork/{version('handiwork')}"
        headers = {**self.headers, "authorization": f"Bearer {token}", "user-agent": agent}
        self._client = httpx2.AsyncClient(headers=headers, timeout=SECONDS, follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    @property
    def push_address(self) -> str:
        """The address for a push."""
        return f"{self.web}/{self.path}.git"

    @property
    @abstractmethod
    def api(self) -> str:
        """The address of the API."""

    @abstractmethod
    async def account(self) -> str:
        """Return the name of the account that the token belongs to."""

    @abstractmethod
    async def default_branch(self) -> str:
        """Return the repository's default branch; raise ForgeError if the account may not push to the repository."""

    @abstractmethod
    async def has_branch(self, name: str) -> bool:
        """Return whether the repository has a branch."""

    @abstractmethod
    async def open(self, draft: Draft, branch: str) -> PullRequest:
        """Open a request to merge ``branch``; there is none for the same base."""

    @abstractmethod
    async def find(self, branch: str, base: str) -> PullRequest | None:
        """Return the open request of a branch for a base."""

    async def _send(self, method: str, path: str, expect: int, **more: Any) -> Any:
        """Send a request and return the JSON of its answer; any other status than ``expect`` raises."""
        try:
            answer = await self._client.request(method, f"{self.api}{path}", **more)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            problem = f"{self.host} does not answer ({reason}): check the network, and try again"
            raise ForgeUnreachableError(problem) from None
        status = answer.status_code
        try:
            content: Any = answer.json()
        except ValueError:
            content = None
        if status == expect and content is not None:
            return content
        if status == HTTPStatus.UNAUTHORIZED:
            raise TokenError(f"{self.host} does not accept the token ({_reason(content)}): give another one")
        if status == HTTPStatus.FORBIDDEN:
            raise ForgeError(f"{self.host} refuses: {_reason(content)}. The token needs {self._scopes}")
        if content is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ForgeUnreachableError(f"{self.host} answers with {status}, not as its API does: try again later")
        if 300 <= status < 400:
            raise ForgeError(f"the repository {self.path} has moved: give the remote its new address")
        raise _StatusError(status, f"{self.host} refuses: {_reason(content)}")

    @property
    @abstractmethod
    def _scopes(self) -> str:
        """The permissions that a token needs, in words."""

    def _no_repository(self) -> ForgeError:
        return ForgeError(f"{self.host} has no repository {self.path}, or the token may not see it")

    def _no_permission(self, account: str) -> ForgeError:
        return ForgeError(
            f"{account} may not push to {self.path} on {self.host}: fork it, and make your fork the remote"
        )


class _StatusError(ForgeError):
    """An answer with a status that the caller may know more about."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class GitHub(Forge):
    """GitHub, or GitHub Enterprise."""

    noun = "pull request"
    push_user = "x-access-token"
    headers: ClassVar = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}

    @property
    def api(self) -> str:
        """The address of the API."""
        if self.host == "github.com" or self.host.endswith(".ghe.com"):
            return f"https://api.{self.host}"
        return f"{self.web}/api/v3"

    async def account(self) -> str:
        """Return the login."""
        return _field(await self._send("GET", "/user", 200), "login", str)

    async def default_branch(self) -> str:
        """Return the repository's default branch."""
        try:
            repository = await self._send("GET", f"/repos/{self.path}", 200)
        except _StatusError:
            raise self._no_repository() from None
        if not _field(repository, "permissions", dict).get("push", True):
            raise self._no_permission(await self.account())
        return _field(repository, "default_branch", str)

    async def has_branch(self, name: str) -> bool:
        """Return whether the repository has a branch."""
        return await _exists(self._send("GET", f"/repos/{self.path}/branches/{quote(name, safe='')}", 200))

    async def open(self, draft: Draft, branch: str) -> PullRequest:
        """Open a pull request."""
        body = {
            "title": draft.title,
            "body": draft.body,
            "head": branch,
            "base": draft.base,
            "draft": draft.unfinished,
        }
        return self._of(await self._send("POST", f"/repos/{self.path}/pulls", 201, json=body))

    async def find(self, branch: str, base: str) -> PullRequest | None:
        """Return the open pull request of a branch for a base."""
        owner = self.path.partition("/")[0]
        query = {"head": f"{owner}:{branch}", "base": base, "state": "open"}
        found = await self._send("GET", f"/repos/{self.path}/pulls", 200, params=query)
        return self._of(found[0]) if found else None

    @property
    def _scopes(self) -> str:
        return "the scope repo or, if it is fine-grained, write access to contents and pull requests"

    def _of(self, found: Any) -> PullRequest:
        head = _field(_field(found, "head", dict), "sha", str)
        return PullRequest(_field(found, "number", int), _link(found, "html_url"), _commit(head))


class GitLab(Forge):
    """GitLab, on its own host or another."""

    noun = "merge request"
    push_user = "oauth2"

    @property
    def api(self) -> str:
        """The address of the API."""
        return f"{self.web}/api/v4"

    async def account(self) -> str:
        """Return the user name."""
        return _field(await self._send("GET", "/user", 200), "username", str)

    async def default_branch(self) -> str:
        """Return the project's default branch."""
        try:
            project = await self._send("GET", self._project, 200)
        except _StatusError:
            raise self._no_repository() from None
        access = _field(project, "permissions", dict)
        levels = [_field(part, "access_level", int) for part in access.values() if part]
        if levels and max(levels) < _DEVELOPER:  # an administrator has none, and may push
            raise self._no_permission(await self.account())
        return _field({"default_branch": "", **project}, "default_branch", str | None) or ""

    async def has_branch(self, name: str) -> bool:
        """Return whether the project has a branch."""
        return await _exists(self._send("GET", f"{self._project}/repository/branches/{quote(name, safe='')}", 200))

    async def open(self, draft: Draft, branch: str) -> PullRequest:
        """Open a merge request."""
        body = {
            "title": f"Draft: {draft.title}" if draft.unfinished else draft.title,
            "description": draft.body,
            "source_branch": branch,
            "target_branch": draft.base,
        }
        return self._of(await self._send("POST", f"{self._project}/merge_requests", 201, json=body))

    async def find(self, branch: str, base: str) -> PullRequest | None:
        """Return the open merge request of a branch for a base."""
        query = {"source_branch": branch, "target_branch": base, "state": "opened"}
        found = await self._send("GET", f"{self._project}/merge_requests", 200, params=query)
        return self._of(found[0]) if found else None

    @property
    def _scopes(self) -> str:
        return "the scope api and the role Developer"

    @property
    def _project(self) -> str:
        return f"/projects/{quote(self.path, safe='')}"

    def _of(self, found: Any) -> PullRequest:
        return PullRequest(_field(found, "iid", int), _link(found, "web_url"), _commit(_field(found, "sha", str)))


async def _exists(asking: Any) -> bool:
    try:
        await asking
    except _StatusError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True


def _field(content: Any, name: str, kind: Any) -> Any:
    """Return a field of an answer. Raises ForgeUnreachableError if the answer has none of this kind."""
    value = cast("dict[str, Any]", content).get(name) if isinstance(content, dict) else None
    if not isinstance(value, kind):
        raise ForgeUnreachableError(f"the forge's answer has no {name}, so it is not the API of GitHub or GitLab")
    return value


def _link(content: Any, name: str) -> str:
    """Return a field that is a web address; the user's browser opens it."""
    url = _field(content, name, str)
    if not url.startswith(("https://", "http://")):
        raise ForgeUnreachableError(f"the forge's answer has a {name} that is no web address")
    return url


def _commit(name: str) -> str:
    """Return the name of a commit, which git takes as an argument."""
    if not re.fullmatch(r"[0-9a-f]{40,64}", name):
        raise ForgeUnreachableError("the forge's answer names no commit, so it is not the API of GitHub or GitLab")
    return name


def _reason(content: Any) -> str:
    """Return the reason in an answer: a text, a list of texts, or texts by field."""
    if not isinstance(content, dict):
        return "it gives no reason"
    fields = cast("dict[str, Any]", content)
    first = fields.get("error_description") or fields.get("message") or fields.get("error")
    return "; ".join([*_texts(first), *_texts(fields.get("errors"))]) or "it gives no reason"


def _texts(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part[:1000]]
    if isinstance(part, list):
        return [text for entry in cast("list[Any]", part) for text in _texts(entry)]
    if isinstance(part, dict):
        fields = cast("dict[str, Any]", part)
        if "message" in fields:
            return _texts(fields["message"])
        if "code" in fields:
            return [f"{fields.get('field', fields.get('resource', 'request'))} is {fields['code']}"]
        return [f"{name} {text}" for name, value in fields.items() for text in _texts(value)]
    return []
