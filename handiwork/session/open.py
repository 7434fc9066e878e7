"""Create or reopen a session from its parts: log, workspace, sandbox, model and agent."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from handiwork.agents.base import Agent
from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.errors import HandiworkError
from handiwork.events.action import MessageAction
from handiwork.events.base import Event, Model
from handiwork.events.record import Confirmation, Limits, SessionStarted, SettingsChanged
from handiwork.llm import create as llms
from handiwork.llm.types import LLM
from handiwork.log.eventlog import EventLog
from handiwork.log.session import fresh_id
from handiwork.log.store import Store
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.create import SandboxName
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.toolchains import programs_of
from handiwork.sandbox.users import container_ids
from handiwork.session.approval.shell_commands import reader_names
from handiwork.session.loop import Over, never
from handiwork.session.recorded_egress import recorded
from handiwork.session.secrets import Secrets, load
from handiwork.session.session import Session, SessionConfig
from handiwork.session.steps.live import Observer, Status
from handiwork.session.storage.branches import WorkspaceBranches, work_dir
from handiwork.session.storage.gc import make_room
from handiwork.session.storage.layout import claimed, layer_of, layers, session_dir, snapshots_in_use, snapshots_of
from handiwork.workspace.apply_journal import undo_cut_apply
from handiwork.workspace.changes import Change, changes_of_overlay, changes_of_tree
from handiwork.workspace.copy import Workspace, make_copy
from handiwork.workspace.in_place import recover
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.manifest import private_dirs
from handiwork.workspace.snapshots.object_store import remove_tree


class Setup(Model):
    """What a session is made of. ``workspace`` is the absolute path of the user's directory.

    ``secrets`` says where they come from, like "NAME" or "NAME=@/FILE", never what they are.
    """

    agent: str
    model: str
    base_url: str | None = None
    sandbox: SandboxName = "bubblewrap"
    image: str | None = None
    workspace: str
    in_place: bool = False
    mount_ro: tuple[str, ...] = ()
    allow_net: tuple[str, ...] = ()
    limits: Limits = Limits()
    confirmation: Confirmation = "never"
    secrets: tuple[str, ...] = ()
    temperature: float | None = None
    """The least that a model is asked with; None leaves it to the agent."""
    snapshots: int = 20
    """GiB that the snapshots of all sessions may take; 0 takes none."""


class SetupError(HandiworkError):
    """The session cannot be created or resumed as asked; the text says what to change."""

    status = 409


@dataclass(frozen=True)
class Opened:
    """A session that is ready to run, with the resources to close after it."""

    session: Session
    setup: Setup
    log: EventLog
    _store: Store
    _data: Path
    _collecting: asyncio.Task[None]

    @property
    def id(self) -> str:
        """The session's id."""
        return self.log.id

    async def run(self, message: str | MessageAction | None = None, over: Over = never) -> State:
        """Run the session as ``Session.run`` does, and keep its state for lists of sessions."""
        using = snapshots_in_use(self._data)
        await asyncio.to_thread(using.__enter__)
        try:
            await self._store.update(self.id, state="running")
            try:
                return await self.session.run(message, over)
            finally:
                await self._store.update(self.id, state=self.session.state.agent_state)
        finally:
            using.__exit__(None, None, None)

    @asynccontextmanager
    async def hold_lease(self) -> AsyncGenerator[None]:
        """Keep the session for this process, between its runs too, and close it before another one may have it.

        Raises LeaseHeld if another one has it.
        """
        holding = self.session.hold_lease()
        try:
            await holding.__aenter__()
        except BaseException:
            await self.close()
            raise
        try:
            yield
        finally:
            try:
                await self.close()
            finally:
                await holding.__aexit__(None, None, None)

    async def wait_until_resumed(self) -> None:
        """Wait until any process resumes the session; this process must hold the lease."""
        await self.session.wait_until_resumed()

    async def close(self) -> None:
        """Close the sandbox and the model's connections."""
        await self.session.close()
        await self._collecting


async def create(
    store: Store,
    data: Path,
    setup: Setup,
    watch: Observer,
    title: str,
    message: MessageAction | None = None,
    marks: Sequence[str] = (),
    llm: LLM | None = None,
) -> Opened:
    """Make a session with a copy of the workspace, and the user's first message in its log.

    The log has the session with its message or not at all, and only once its files are complete: a session that is
    listed can be resumed, whenever this process is killed. Its folder has the files ``marks`` by then. ``llm`` is its
    first model; without it the model is made from its name. Raises SetupError, SecretError, AgentNotFoundError,
    LLMError, WorkspaceError.
    """
    secrets = load(setup.secrets)
    store.redactor.learn(secrets.values)
    agent, llm = find(setup.agent), llm or _llm(store, setup, watch)
    new = fresh_id()
    folder = session_dir(data, new)
    first: list[Event] = [started(setup, folder, llm.name)]
    if message is not None:
        first.append(message.with_fields(source="user"))
    if cut := await asyncio.to_thread(undo_cut_apply, Path(setup.workspace)):
        watch(Status(cut))
    watch(Status("copying the workspace"))
    with claimed(folder):
        try:
            await asyncio.to_thread(_copy, setup, folder)
            for mark in marks:
                (folder / mark).touch(mode=0o600)
        except BaseException:
            await asyncio.to_thread(remove_tree, folder)
            raise
        log = await stored(
            store.create(
                agent=setup.agent,
                model=setup.model,
                workspace=setup.workspace,
                title=title,
                session_id=new,
                events=first,
                state="loading" if message is None else "running",
            ),
            folder,
        )
    try:
        return _open(store, setup, log, agent, llm, folder, watch, secrets, begun=True)
    except Exception:
        await store.delete(new)
        await asyncio.to_thread(remove_tree, folder)
        raise


async def stored(storing: Coroutine[Any, Any, EventLog], folder: Path) -> EventLog:
    """Return the log of a new session; if cancelled meanwhile, the session is there and can be resumed."""
    task = asyncio.create_task(storing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
    finally:
        if task.done() and not task.cancelled() and task.exception() is not None:
            await asyncio.to_thread(remove_tree, folder)


async def reopen(
    store: Store, data: Path, session_id: str, watch: Observer, said: Sequence[Event] = (), **changes: Any
) -> Opened:
    """Open a session again, with the fields of its Setup that are to be others.

    What the user ``said`` is in the log before anything slow begins. Raises as ``create`` does.
    """
    log = await store.log(session_id)
    setup = Setup.model_validate({**(await setup_of(log)).model_dump(), **changes})
    secrets = load(setup.secrets)
    store.redactor.learn(secrets.values)
    folder = session_dir(data, log.id)
    agent, llm = find(setup.agent), _llm(store, setup, watch)
    if said:
        await log.append(*said)
    return _open(store, setup, log, agent, llm, folder, watch, secrets, begun=False)


def started(setup: Setup, folder: Path, model: str, *, resumed: bool = False) -> SessionStarted:
    """Return what a session, whose files are in ``folder``, runs with; ``model`` is the model's own name."""
    copied = setup.sandbox == "none" and not setup.in_place
    return SessionStarted(
        agent=find(setup.agent).__name__,
        model=model,
        sandbox=setup.sandbox,
        workspace=str(work_dir(folder)) if copied else setup.workspace,
        limits=setup.limits,
        confirmation=setup.confirmation,
        settings=setup.model_dump(mode="json"),
        resumed=resumed,
    )


async def changes(data: Path, log: EventLog) -> list[Change]:
    """Return the session's changes to its workspace so far, by path. Raises WorkspaceError."""
    setup, folder = await setup_of(log), session_dir(data, log.id)
    return await asyncio.to_thread(_changes, setup, folder)


def _changes(setup: Setup, folder: Path) -> list[Change]:
    workspace = Workspace.load(folder)
    if setup.in_place:
        return changes_of_tree(workspace, Path(setup.workspace))
    if setup.sandbox == "none":
        return changes_of_tree(workspace, work_dir(folder))
    return changes_of_overlay(workspace, *layers(folder, workspace))


async def setup_of(log: EventLog) -> Setup:
    """Return the setup of the session's last run, with later changes. Raises SetupError if the session never ran."""
    before: int | None = None
    changed: dict[str, Any] = {}
    while page := await log.read_back(before):
        for event in page:
            if isinstance(event, SessionStarted):
                try:
                    return Setup.model_validate({**event.settings, **changed})
                except ValidationError as error:
                    problem = "; ".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors() if one["loc"])
                    raise SetupError(
                        f"event {event.id} of session {log.id} does not say what it runs with ({problem}): "
                        "restore the log from a backup, or delete the session"
                    ) from None
            if isinstance(event, SettingsChanged):
                changed = {**_of(event), **changed}
        before = page[-1].id
    raise SetupError(f"session {log.id} never began: run the task anew")


def _of(event: SettingsChanged) -> dict[str, Any]:
    names = ("limits", "confirmation", *(("model", "base_url") if event.model is not None else ()))
    return {name: value for name in names if (value := getattr(event, name)) is not None or name == "base_url"}


def _copy(setup: Setup, folder: Path) -> None:
    recover(folder.parent.parent, Path(setup.workspace))
    workspace = make_copy(Path(setup.workspace), folder)
    if setup.sandbox == "none" and not setup.in_place:
        private_dirs(work_dir(folder).parent)
        shutil.copytree(workspace.base, work_dir(folder), symlinks=True)


def sandbox_of(
    store: Store,
    folder: Path,
    setup: Setup,
    session_folder: Path | None = None,
    egress: Egress | None = None,
    watch: Observer = lambda _: None,
) -> Sandbox:
    """Return the session's sandbox, not started; one on a child's ``folder`` where the session's is given too.

    Without ``egress`` it has no network. ``watch`` is told what its start waits for.
    """

    async def save_blob(data: AsyncIterator[bytes]) -> str:
        return await store.blobs.put(data)

    workspace = Workspace.load(session_folder or folder)
    place = Path(setup.workspace)
    if setup.sandbox == "none":
        names = [given.partition("=")[0] for given in setup.secrets]
        there = SandboxPaths(folder, place if setup.in_place else work_dir(folder))
        return sandboxes.create("none", there, save_blob, withheld=names)
    there, snapshots = SandboxPaths(folder, place), None
    if not setup.in_place:
        # Bubblewrap maps owners as it mounts, and Docker does not.
        owner = container_ids(workspace.base) if setup.sandbox == "docker" else None
        layer = layer_of(session_folder or folder, workspace, owner)
        there = SandboxPaths(folder, place, workspace.base, workspace.mounts, layer)
        snapshots = (
            None if session_folder else snapshots_of(there, workspace.tree, setup.snapshots, store.redactor.bytes)
        )

    def on_status(text: str) -> None:
        watch(Status(text))

    return sandboxes.create(
        setup.sandbox,
        there,
        save_blob,
        [Path(path) for path in setup.mount_ro],
        snapshots=snapshots,
        egress=egress,
        image=setup.image,
        on_status=on_status,
    )


def _llm(store: Store, setup: Setup, watch: Observer) -> LLM:
    def blob(digest: str) -> bytes:
        return store.blobs.path(digest).read_bytes()

    return llms.create(
        setup.model, setup.base_url, blobs=blob, status=lambda text: watch(Status(store.redactor.text(text)))
    )


def _open(
    store: Store,
    setup: Setup,
    log: EventLog,
    agent: type[Agent],
    llm: LLM,
    folder: Path,
    watch: Observer,
    secrets: Secrets,
    *,
    begun: bool,
) -> Opened:
    def make_llm(model: str, base_url: str | None) -> LLM:
        return _llm(store, setup.model_copy(update={"model": model, "base_url": base_url}), watch)

    def allowed() -> list[str]:
        return session.state.totals.network

    def on_copy(copy: Path) -> Sandbox:
        return sandbox_of(store, copy, setup, folder, recorded(log, allowed, subtask=int(copy.name)), watch)

    terms = SessionConfig(
        limits=setup.limits,
        confirmation=setup.confirmation,
        temperature=setup.temperature,
        in_place=setup.in_place,
        shadowed=programs_of(Path(setup.workspace), reader_names())
        | programs_of(Workspace.load(folder).base, reader_names()),
        settings=setup.model_dump(mode="json"),
    )
    branches = None if setup.in_place else WorkspaceBranches(folder, setup.sandbox != "none", on_copy)
    sandbox = sandbox_of(store, folder, setup, egress=recorded(log, allowed), watch=watch)
    session = Session(
        log, store.blobs, agent, llm, sandbox, terms, watch, make_llm, branches, secrets=secrets, begun=begun
    )
    # Nobody need wait for it, or ask for it: a store that is full would keep no more snapshots.
    data = folder.parent.parent
    collecting = asyncio.create_task(make_room(store, data, setup.snapshots, watch))
    return Opened(session, setup, log, store, data, collecting)
