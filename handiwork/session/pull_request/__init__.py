"""A pull request from a session's changes: its branch is pushed to the forge of the workspace's remote and proposed.

Nothing is sent before ``open_request``, except the token to the forge that it is for. Every step can be repeated: the
branch is found again, and a request that exists is returned, with the session's newer changes as a further commit.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.events.action import AgentFinishAction, MessageAction
from handiwork.llm.catalog.keys import keep_key, kept_key, keys_file
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.session.apply import commit_mark, commit_session, session_branch
from handiwork.session.config import config_of
from handiwork.session.open import all_changes_and_note
from handiwork.session.pull_request.forge import Draft, Forge, ForgeError, PullRequest, TokenError
from handiwork.session.pull_request.target import Target, target_of
from handiwork.session.storage.layout import session_dir
from handiwork.settings import load, settings_file
from handiwork.workspace.git.commit_changes import (
    ForeignCommitsError,
    advance_branch,
    branches_like,
    commit_after,
    name_commit,
)
from handiwork.workspace.git.remote import GitRemote, PushError, push_commit, remote_of

LONGEST_TOKEN = 1000
"""The maximum length of a token in characters; those of the forges have up to 255."""


@dataclass(frozen=True)
class Proposal:
    """A request as it would be opened, for the user to edit.

    ``account`` is the forge's name of the token's owner, None without a token that works: ``problem`` then tells why,
    and ``base`` may be "". ``bases`` are likely branches to merge into. ``files`` are the paths that the session
    changed. ``warnings`` has a sentence for each other thing that the request would have, or lack.
    """

    target: Target
    account: str | None
    problem: str
    title: str
    body: str
    base: str
    bases: tuple[str, ...]
    files: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class OpenedRequest:
    """A request that is open; ``created`` is false if it was open before, with the title and body that it had.

    ``warnings`` has a sentence for each change of the session that the request lacks.
    """

    target: Target
    request: PullRequest
    branch: str
    created: bool
    warnings: tuple[str, ...]


class ForgeTokens:
    """The tokens of forges: those that the user gave this process, of the environment, and the kept ones.

    The variable GITHUB_TOKEN or GITLAB_TOKEN is for github.com or gitlab.com and the hosts of the settings; a token
    that the user gives is for one host.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    async def find(self, target: Target) -> tuple[str, str]:
        """Return the token for a forge, and the place that it is from; both are "" without one. Raises KeysError."""
        if token := self._tokens.get(target.host):
            return token, "you"
        if target.own and (token := os.environ.get(target.variable, "").strip()):
            return token, f"the variable {target.variable}"
        kept = await asyncio.to_thread(kept_key, _name(target))
        return (kept, str(keys_file())) if kept else ("", "")

    async def give(self, target: Target, token: str, *, keep: bool) -> str:
        """Use a token from here on, and keep it in the file of keys if asked to; return its account.

        Raises TokenError if the forge does not accept it, ForgeError, KeysError.
        """
        token = token.strip()
        if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise TokenError("the token is empty or has characters that no token has")
        async with target.forge(token) as forge:
            account = await forge.account()
        if keep:
            await asyncio.to_thread(keep_key, _name(target), token)
        self._tokens[target.host] = token
        return account


def no_token(target: Target) -> TokenError:
    """Return the error for a missing token."""
    known = "" if target.own else f'write [forges."{target.host}"] with its kind into {settings_file()} and '
    return TokenError(f"there is no token for {target.host}: {known}set {target.variable}, or enter a token")


async def find_target(log: EventLog) -> Target:
    """Return the forge of the session's workspace. Raises NoRemoteError, UnknownForgeError, SessionError."""
    return (await _target(log))[1]


async def propose(data: Path, log: EventLog, tokens: ForgeTokens) -> Proposal:
    """Return the request that the session's changes would make; with a token, the forge is asked about it.

    Raises NoRemoteError, UnknownForgeError, WorkspaceError without changes and commits, and ForgeError if the account
    may not push.
    """
    remote, target = await _target(log)
    changes, note = await all_changes_and_note(data, log, moved=False)
    files = tuple(change.path for change in changes if not change.ignored)
    # A session may have committed what the user had changed, and nothing else.
    session_files = (await config_of(log)).files(session_dir(data, log.id))
    if not files and not await asyncio.to_thread(session_files.has_commits):
        raise WorkspaceError(f"the session has no changes, so there is nothing for a {target.noun}")
    base = remote.head if remote.head in remote.branches else remote.default
    default, account, problem = remote.default, None, ""
    token, source = await tokens.find(target)
    if token:
        try:
            async with target.forge(token) as forge:
                account, default = await forge.account(), await forge.default_branch()
        except TokenError as error:
            problem = f"{error}. This one is from {source}"
    return Proposal(
        target,
        account,
        problem,
        (await log.info()).title,
        await _last_message(log),
        base or default,
        tuple(dict.fromkeys(filter(None, (base, default)))),
        files,
        (*_warnings(remote, target), *([f"{note}."] if note else [])),
    )


async def open_request(store: Store, data: Path, log: EventLog, tokens: ForgeTokens, draft: Draft) -> OpenedRequest:
    """Push the session's changes as its branch and open a request for it, or add them to the one that is open.

    Token, permission and base are checked first. Without a base, the draft is for the repository's default branch.
    Raises TokenError, ForgeError, PushError, and like ``commit_session``.
    """
    _, target = await _target(log)
    token, _ = await tokens.find(target)
    if not token:
        raise no_token(target)
    if len(token) >= 8:  # a shorter one would be taken out of ordinary text
        store.redactor.learn({_name(target): token})
    async with target.forge(token) as forge:
        await forge.account()
        default = await forge.default_branch()
        draft = replace(draft, base=draft.base or default)
        if not await forge.has_branch(draft.base):
            raise ForgeError(f"{target.path} on {target.host} has no branch {draft.base}: give another base")
        workspace = Path((await config_of(log)).workspace)
        names = await asyncio.to_thread(branches_like, workspace, session_branch(log))
        made = await commit_session(store, data, log, draft.title)
        commit, warnings = made.commit, made.warnings
        for branch in names:
            if request := await forge.find(branch, draft.base):
                await asyncio.to_thread(_add, workspace, log, forge, token, branch, request, commit)
                return OpenedRequest(target, request, branch, created=False, warnings=warnings)
        branch = await asyncio.to_thread(name_commit, workspace, names[-1], commit)
        own = f"refs/heads/{branch}"  # an earlier call may have made it, with another time in its commit
        await asyncio.to_thread(push_commit, workspace, own, branch, forge.push_address, forge.push_user, token)
        return OpenedRequest(target, await forge.open(draft, branch), branch, created=True, warnings=warnings)


def _add(
    workspace: Path, log: EventLog, forge: Forge, token: str, branch: str, request: PullRequest, commit: str
) -> None:
    """Add the session's changes to an open request's branch, unless it has them. Raises PushError, CommitError."""
    try:
        new = commit_after(workspace, request.head, commit, commit_mark(log))
    except ForeignCommitsError as error:
        own = name_commit(workspace, session_branch(log), commit)
        raise PushError(
            f"the branch {branch} of {forge.noun} {request.number} has commits of others ({error}), which the session's"
            f" changes would undo: merge your branch {own} into it yourself"
        ) from None
    push_commit(workspace, new, branch, forge.push_address, forge.push_user, token)
    advance_branch(workspace, branch, request.head, new)


async def _target(log: EventLog) -> tuple[GitRemote, Target]:
    workspace = Path((await config_of(log)).workspace)
    remote = await asyncio.to_thread(remote_of, workspace)
    return remote, target_of(remote.address, load({}).forges)


def _name(target: Target) -> str:
    """Return the name of a forge's token among the keys."""
    return f"{target.variable}@{target.host}"


def _warnings(remote: GitRemote, target: Target) -> tuple[str, ...]:
    if not remote.unpushed:
        return ()
    commits, them = ("a commit", "it") if remote.unpushed == 1 else (f"{remote.unpushed} commits", "them")
    return (f"HEAD has {commits} that {remote.name} does not have: the {target.noun} has {them} too.",)


async def _last_message(log: EventLog) -> str:
    """Return the agent's final message of its own task, "" without one."""
    before: int | None = None
    while page := await log.read_back(before):
        for event in page:
            match event:
                case AgentFinishAction(subtask=0, outputs=outputs):
                    return str(outputs.get("message") or "").strip()
                case MessageAction(subtask=0, source="agent", content=content):
                    return content.strip()
                case _:
                    pass
        before = page[-1].id
    return ""
