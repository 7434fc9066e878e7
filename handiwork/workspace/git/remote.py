"""The remote of the user's repository: its address, its branches, and the push of a branch over HTTPS with a token.

A push runs in a bare repository of its own, which borrows the objects: nothing that the user's repository configures
takes part, so neither its hooks nor its settings run a program, change the address or see the token.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from pathlib import Path

from handiwork.errors import HandiworkError, WorkspaceError
from handiwork.workspace.files.temp_dir import temporary_dir
from handiwork.workspace.git.command import run_git, run_git_alone
from handiwork.workspace.git.import_commits import make_borrower
from handiwork.workspace.git.repository import Repository, repository_at

_STALLED = (("http.lowSpeedLimit", "1"), ("http.lowSpeedTime", "60"))
"""A transfer without a byte for 60 seconds ends."""


class NoRemoteError(WorkspaceError):
    """The workspace is not a repository, or its repository has no remote."""


class PushError(HandiworkError):
    """The branch cannot be pushed; the text names the reason and the remedy."""

    status = 409


class PushRejectedError(PushError):
    """The remote has a branch of this name with other commits, or its rules refuse the branch."""


@dataclass(frozen=True)
class GitRemote:
    """The remote ``name`` at ``address``, as far as the repository knows it.

    ``head`` is the branch that is checked out, ``default`` the remote's default branch; each is "" if unknown.
    ``unpushed`` is the number of HEAD's commits that no known branch of the remote has.
    """

    name: str
    address: str
    head: str
    default: str
    branches: frozenset[str]
    unpushed: int


def remote_of(workspace: Path) -> GitRemote:
    """Return the remote of the checked out branch, else "origin", else the only one. Raises NoRemoteError."""
    repository = repository_at(workspace)
    if repository is None:
        raise NoRemoteError(f"{workspace} is not a git repository, so there is nowhere to open a request")
    git_dir = repository.git_dir
    head = _output(git_dir, "symbolic-ref", "--quiet", "--short", "HEAD")
    name, address = _address(repository, head, workspace)
    prefix = f"refs/remotes/{name}/"
    listed = _output(git_dir, "for-each-ref", "--format=%(refname)", prefix).splitlines()
    branches = frozenset(line.removeprefix(prefix) for line in listed) - {"HEAD"}
    default = _output(git_dir, "symbolic-ref", "--quiet", f"{prefix}HEAD").removeprefix(prefix)
    unpushed = _output(git_dir, "rev-list", "--count", "HEAD", "--not", f"--glob={prefix}*") if branches else ""
    return GitRemote(name, address, head, default, branches, int(unpushed or 0))


def push_commit(workspace: Path, commit: str, branch: str, address: str, user: str, token: str) -> None:
    """Push a commit of the repository as a branch to an HTTP address; the branch may have it already.

    Raises PushRejectedError if the remote's branch has other commits, PushError.
    """
    repository = repository_at(workspace)
    if repository is None:
        raise NoRemoteError(f"{workspace} is not a git repository any more")
    identity = _output(repository.git_dir, "rev-parse", "--quiet", "--verify", f"{commit}^{{commit}}")
    if not identity:
        raise PushError(f"{workspace} does not have the commit {commit} any more: try again")
    basic = base64.b64encode(f"{user}:{token}".encode()).decode()
    settings = [
        (f"http.{address}.extraHeader", f"Authorization: Basic {basic}"),
        ("http.followRedirects", "false"),  # the token is for this host alone
        ("credential.helper", ""),
        *_STALLED,
        *([("http.sslCAInfo", file)] if (file := os.environ.get("SSL_CERT_FILE")) else []),
    ]
    with temporary_dir() as private:
        make_borrower(private, repository)
        reference = f"{identity}:refs/heads/{branch}"
        command = ("--git-dir=.", "push", "--porcelain", "--no-verify", "--no-follow-tags", address, reference)
        pushed = run_git_alone(private, *command, protocols=address.partition(":")[0], settings=settings)
    if pushed.returncode:
        raise _problem(branch, pushed.stdout.decode(errors="replace"), pushed.stderr.decode(errors="replace"))


def _address(repository: Repository, head: str, workspace: Path) -> tuple[str, str]:
    """Return the name and the address of the remote to push to. Raises NoRemoteError."""
    addresses = {
        match[1]: value
        for name, value in repository.settings.items()
        if value and (match := re.fullmatch(r"remote\.(.+)\.url", name, re.DOTALL))
    }
    tracked = repository.settings.get(f"branch.{head}.remote") or ""
    names = [name for name in (tracked, "origin", *addresses) if name in addresses]
    if not names:
        raise NoRemoteError(f"the repository in {workspace} has no remote: add one with git remote add origin ADDRESS")
    if names[0] not in (tracked, "origin") and len(addresses) > 1:
        raise NoRemoteError(
            f"the repository in {workspace} has several remotes ({', '.join(sorted(addresses))}) and none is origin: "
            "choose one with git branch --set-upstream-to=REMOTE/BRANCH"
        )
    return names[0], addresses[names[0]]


def _problem(branch: str, output: str, errors: str) -> PushError:
    """Return the error for a push that failed, from git's own words."""
    refused = next((line for line in output.splitlines() if line.startswith("!")), "")
    said = "\n".join(line.strip() for line in errors.splitlines() if line.strip())[-1000:]
    if "(fetch first)" in refused or "(non-fast-forward)" in refused:
        return PushRejectedError(
            f"the remote has a branch {branch} with other commits: rename or delete it there, and try again"
        )
    if refused:
        return PushRejectedError(f"the remote refuses the branch {branch}: {refused.rpartition('[')[2]}\n{said}")
    if "returned error: 403" in errors:
        return PushError(f"the token may not push to this repository: give it the permission to write\n{said}")
    if "returned error: 401" in errors or "Authentication failed" in errors or "could not read Username" in errors:
        return PushError("the remote does not accept the token for a push: make one with the permission to write")
    return PushError(f"the branch {branch} cannot be pushed: {said}")


def _output(git_dir: Path, *arguments: str) -> str:
    """Return the output of a git command, "" if it fails."""
    answer = run_git(git_dir, *arguments)
    return answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else ""
