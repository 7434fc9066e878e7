"""Puts a session together from its parts: log, workspace, sandbox, model and agent."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.events.base import Model
from handiwork.events.record import Limits, SessionStarted
from handiwork.llm import create as llms
from handiwork.llm.types import LLM
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bubblewrap import upper_dir
from handiwork.sandbox.changes import Change, changes_of_overlay, changes_of_tree
from handiwork.sandbox.workspace import Workspace, make_copy
from handiwork.session.session import Session
from handiwork.session.watch import Status, Watch


class Setup(Model):
    """What a session is made of. ``workspace`` is the absolute path of the user's directory."""

    agent: str
    model: str
    base_url: str | None = None
    sandbox: Literal["bubblewrap", "none"] = "bubblewrap"
    workspace: str
    in_place: bool = False
    mount_ro: tuple[str, ...] = ()
    limits: Limits = Limits()


class SetupError(Exception):
    """The session cannot be made, or gone on with, as asked; the text says what to change."""


@dataclass(frozen=True)
class Opened:
    """A session that can be run, with what must be closed after it."""

    session: Session
    setup: Setup
    log: EventLog
    _store: Store
    _llm: LLM

    @property
    def id(self) -> str:
        """The session's id."""
        return self.log.id

    async def run(self, message: str | None = None) -> State:
        """Run the session as ``Session.run`` does, and keep its state for lists of sessions."""
        await self._store.update(self.id, state="running")
        try:
            return await self.session.run(message)
        finally:
            await self._store.update(self.id, state=self.session.state.agent_state)

    async def close(self) -> None:
        """End the sandbox and the model's connections."""
        await self.session.close()
        await self._llm.close()


async def create(store: Store, data: Path, setup: Setup, watch: Watch, title: str) -> Opened:
    """Make a session with a copy of the workspace. Raises SetupError, AgentNotFoundError, LLMError, WorkspaceError."""
    agent, llm = find(setup.agent), _llm(store, setup, watch)
    log = await store.create(agent=setup.agent, model=setup.model, workspace=setup.workspace, title=title)
    folder = session_dir(data, log.id)
    watch(Status("copying the workspace"))
    try:
        await asyncio.to_thread(_copy, setup, folder)
    except BaseException:
        await store.delete(log.id)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise
    return _open(store, setup, log, agent, llm, sandbox_of(store, folder, setup), watch)


async def reopen(store: Store, data: Path, session_id: str, watch: Watch, **changes: Any) -> Opened:
    """Open a session again, with the fields of its Setup that are to be others. Raises as ``create`` does."""
    log = await store.log(session_id)
    setup = Setup.model_validate({**(await setup_of(log)).model_dump(), **changes})
    folder = session_dir(data, log.id)
    agent, llm = find(setup.agent), _llm(store, setup, watch)
    return _open(store, setup, log, agent, llm, sandbox_of(store, folder, setup), watch)


def session_dir(data: Path, session_id: str) -> Path:
    """Return where a session's files are."""
    return data / "sessions" / session_id


async def changes(data: Path, log: EventLog) -> list[Change]:
    """Return what the session has changed in its workspace so far, by path. Raises WorkspaceError."""
    setup, folder = await setup_of(log), session_dir(data, log.id)
    return await asyncio.to_thread(_changes, setup, folder)


def _changes(setup: Setup, folder: Path) -> list[Change]:
    workspace = Workspace.load(folder)
    if setup.in_place:
        return changes_of_tree(workspace, Path(setup.workspace))
    if setup.sandbox == "none":
        return changes_of_tree(workspace, work_dir(folder))
    return changes_of_overlay(workspace, upper_dir(folder))


async def setup_of(log: EventLog) -> Setup:
    """Return what the session was last run with. Raises SetupError where it never ran."""
    before: int | None = None
    while page := await log.read_back(before):
        for event in page:
            if isinstance(event, SessionStarted):
                return Setup.model_validate(event.settings)
        before = page[-1].id
    raise SetupError(f"session {log.id} never began: run the task anew")


def _copy(setup: Setup, folder: Path) -> None:
    workspace = make_copy(Path(setup.workspace), folder)
    if setup.sandbox == "none" and not setup.in_place:
        shutil.copytree(workspace.base, work_dir(folder), symlinks=True)


def work_dir(folder: Path) -> Path:
    """Return where the agent works on a copy without a sandbox."""
    return folder / "work" / "workspace"


def sandbox_of(store: Store, folder: Path, setup: Setup) -> Sandbox:
    """Return the session's sandbox, not started."""

    async def save_blob(data: AsyncIterator[bytes]) -> str:
        return await store.blobs.put(data)

    workspace = Workspace.load(folder)
    place = Path(setup.workspace)
    if setup.sandbox == "none":
        return sandboxes.create("none", folder, place if setup.in_place else work_dir(folder), save_blob)
    base = None if setup.in_place else workspace.base
    read_only = [Path(path) for path in setup.mount_ro]
    return sandboxes.create("bubblewrap", folder, place, save_blob, base, workspace.mounts, read_only)


def _llm(store: Store, setup: Setup, watch: Watch) -> LLM:
    def blob(digest: str) -> bytes:
        return store.blobs.path(digest).read_bytes()

    return llms.create(setup.model, setup.base_url, blobs=blob, status=lambda text: watch(Status(text)))


def _open(
    store: Store, setup: Setup, log: EventLog, agent: type[Any], llm: LLM, sandbox: Sandbox, watch: Watch
) -> Opened:
    settings = setup.model_dump(mode="json")
    return Opened(Session(log, agent, llm, sandbox, setup.limits, watch, settings), setup, log, store, llm)
