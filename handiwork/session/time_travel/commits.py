"""Fetch an agent's commits into the user's repository.

Git reads the agent's files inside the session's own sandbox only. It writes a bundle, whose objects are checked here.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import SessionWanted
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.sandbox.base import Sandbox
from handiwork.session.config import config_of
from handiwork.session.open import sandbox_of
from handiwork.session.storage.layout import session_dir
from handiwork.workspace.copy import Workspace
from handiwork.workspace.files.safe_open import look
from handiwork.workspace.git.command import run_git
from handiwork.workspace.git.import_commits import import_commits
from handiwork.workspace.git.repository import repository_at

LARGEST = 1 << 30
"""The maximal size of a bundle in bytes."""

TIMEOUT = 300.0
"""Seconds after which git in the sandbox is stopped."""

HANDOVER_TIMEOUT = 10.0
"""Seconds in which a server that holds the session's lease has to release it."""

_LAST_LINE = 1 << 16
"""Bytes at the end of a log of HEAD that have its last line."""

_BUNDLE = ".git/handiwork.bundle"
_BETWEEN = "commits-"


class NoRepositoryError(WorkspaceError):
    """The agent made a repository in a folder that is none of the user's, so its commits have no destination."""


@dataclass(frozen=True)
class FetchedCommits:
    """The user's ``branch`` with the new commits of the session's HEAD, None without any.

    ``others`` are the session's branches with new commits that its HEAD lacks: these stay in the session.
    """

    branch: str | None = None
    others: tuple[str, ...] = ()


async def fetch_commits(store: Store, data: Path, log: EventLog) -> FetchedCommits:
    """Fetch the commits of the session's HEAD that the user's did not have as a branch.

    Raises NoRepositoryError, WorkspaceError, SandboxError, and LeaseHeld while another process runs the session.
    """
    config, folder = await config_of(log), session_dir(data, log.id)
    files = config.files(folder)
    if not await asyncio.to_thread(files.has_commits):
        return FetchedCommits()
    base = Workspace.load(folder).base
    if look(base, ".git") is None:
        raise NoRepositoryError(f"{config.workspace} is not a git repository, so the commits stay in the session")
    head = await asyncio.to_thread(_head, base)
    sandbox = sandbox_of(store, files, config)
    # Two sandboxes must not write to one layer.
    async with _lease(log):
        for leftover in folder.glob(f"{_BETWEEN}*"):  # left by a killed process
            await asyncio.to_thread(shutil.rmtree, leftover)
        with tempfile.TemporaryDirectory(prefix=_BETWEEN, dir=folder) as name:
            bundle = Path(name, "bundle")
            try:
                await sandbox.start()
                # A fork's shell begins in the directory in which its parent's was.
                await _run(sandbox, f"cd -- {shlex.quote(str(files.agent_dir))}")
                others = await _other_branches(sandbox, base)
                if not await _bundle(sandbox, head, bundle):
                    return FetchedCommits(others=others)
            finally:
                await sandbox.close()
            branch = await asyncio.to_thread(import_commits, Path(config.workspace), bundle, log.id)
            return FetchedCommits(branch, others)


async def has_new_head(data: Path, log: EventLog) -> bool:
    """Return whether the session's HEAD is a commit that the user's repository lacks.

    Runs no git on the agent's files. Does not see commits of a repository without a log of HEAD, as with reftable.
    """
    config, folder = await config_of(log), session_dir(data, log.id)
    files = config.files(folder)

    def is_new() -> bool:
        if not files.has_commits() or look(Workspace.load(folder).base, ".git") is None:
            return False
        repository, head_log = repository_at(files.source), files.head_log()
        if repository is None or head_log is None or head_log.is_link:
            return False
        with head_log.open() as stream:
            stream.seek(max(0, head_log.size - _LAST_LINE))
            found = re.findall(rb"^[0-9a-f]{40,64} ([0-9a-f]{40,64}) ", stream.read(_LAST_LINE), re.MULTILINE)
        return bool(found) and run_git(repository.git_dir, "cat-file", "-e", found[-1].decode()).returncode != 0

    return await asyncio.to_thread(is_new)


@asynccontextmanager
async def _lease(log: EventLog) -> AsyncGenerator[None]:
    """Hold the session's lease; a server that holds it, and runs nothing, releases it. Raises LeaseHeld."""
    if await log.holder() is not None and (await log.info()).state != "running":
        await log.append(SessionWanted(source="user"))
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDOVER_TIMEOUT):
                while await log.holder() is not None:  # noqa: ASYNC110 - the holder is another process
                    await asyncio.sleep(0.05)
    async with log.lease():
        yield


def _head(base: Path) -> str | None:
    """Return the commit at which the session started; None if the repository had none."""
    result = run_git(base / ".git", "rev-parse", "--quiet", "--verify", "HEAD")
    return result.stdout.decode().strip() or None


async def _other_branches(sandbox: Sandbox, base: Path) -> tuple[str, ...]:
    """Return the branches with commits that neither HEAD nor the repository in ``base`` has."""
    listing = "git for-each-ref --format='%(objectname) %(refname:short)' --no-merged HEAD refs/heads 2> /dev/null || :"
    pairs = re.findall(r"^([0-9a-f]{40,64}) (.+)$", await _run(sandbox, listing), re.MULTILINE)

    def new() -> tuple[str, ...]:
        return tuple(name for tip, name in pairs if run_git(base / ".git", "cat-file", "-e", tip).returncode)

    return await asyncio.to_thread(new)


async def _bundle(sandbox: Sandbox, head: str | None, file: Path) -> bool:
    """Bundle the commits since ``head`` with git, and download the bundle; return False if there are none."""
    commits = f"HEAD ^{head}" if head else "HEAD"
    count = f"if git rev-parse --quiet --verify HEAD > /dev/null; then git rev-list --count {commits}; else echo 0; fi"
    if (await _run(sandbox, count)).strip() == "0":
        return False
    await _run(sandbox, f"git bundle create --quiet {_BUNDLE} {commits}")
    size = 0
    with file.open("xb") as target:
        try:
            async for piece in sandbox.download(_BUNDLE):
                size += len(piece)
                if size > LARGEST:
                    raise WorkspaceError(f"the commits take more than {LARGEST} bytes; are there large files in them?")
                target.write(piece)
        except OSError as error:
            raise WorkspaceError(f"the bundle of commits cannot be fetched: {error}") from error
    await _run(sandbox, f"rm {_BUNDLE}")
    return True


async def _run(sandbox: Sandbox, command: str) -> str:
    observation = await sandbox.execute(CmdRunAction(command=command, timeout=TIMEOUT))
    if not isinstance(observation, CmdOutputObservation) or observation.exit_code != 0:
        raise WorkspaceError(f"inside the sandbox `{command}` failed: {observation.text.strip()}")
    return observation.content
