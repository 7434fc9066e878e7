"""Create or reopen a session from its parts: log, workspace, sandbox, model and agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any

from handiwork.agents.base import Agent
from handiwork.agents.registry import find
from handiwork.events.action import MessageAction
from handiwork.events.base import Event
from handiwork.events.record import EgressEvent
from handiwork.llm import create as llms
from handiwork.llm.types import LLM
from handiwork.log.errors import LeaseLost
from handiwork.log.eventlog import EventLog
from handiwork.log.session import fresh_id
from handiwork.log.store import Store
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.toolchains import programs_of
from handiwork.session.approval.shell_commands import reader_names
from handiwork.session.config import SessionConfig, config_of
from handiwork.session.secrets import Secrets, load
from handiwork.session.session import Session
from handiwork.session.steps.live import Observer, Status
from handiwork.session.storage.branches import WorkspaceBranches
from handiwork.session.storage.layout import claimed, session_dir
from handiwork.workspace.apply_journal import undo_cut_apply
from handiwork.workspace.changes import Change
from handiwork.workspace.copy import Workspace
from handiwork.workspace.in_place import recover
from handiwork.workspace.session_files import SessionFiles
from handiwork.workspace.snapshots.object_store import remove_tree


async def create(
    store: Store,
    data: Path,
    config: SessionConfig,
    watch: Observer,
    title: str,
    message: MessageAction | None = None,
    marks: Sequence[str] = (),
    llm: LLM | None = None,
) -> Session:
    """Make a session with a copy of the workspace, and the user's first message in its log.

    The log has the session with its message or not at all, and only once its files are complete: a session that is
    listed can be resumed, whenever this process is killed. Its folder then has the files ``marks``. ``llm`` is its
    first model; None creates the model from its name. Raises SecretError, AgentNotFoundError, LLMError,
    WorkspaceError.
    """
    secrets = load(config.secrets)
    store.redactor.learn(secrets.values)
    agent, llm = find(config.agent), llm or _llm(store, config, watch)
    session_id = fresh_id()
    folder = session_dir(data, session_id)
    files = config.files(folder)
    first: list[Event] = [config.started(agent.__name__, llm.name, str(files.agent_dir))]
    if message is not None:
        first.append(message.with_fields(source="user"))
    if notice := await asyncio.to_thread(undo_cut_apply, Path(config.workspace)):
        watch(Status(notice))
    watch(Status("copying the workspace"))
    with claimed(folder):
        try:
            await asyncio.to_thread(recover, data, Path(config.workspace))
            await asyncio.to_thread(files.create)
            for mark in marks:
                (folder / mark).touch(mode=0o600)
        except BaseException:
            await asyncio.to_thread(remove_tree, folder)
            raise
        log = await stored(
            store.create(
                agent=config.agent,
                model=config.model,
                workspace=config.workspace,
                title=title,
                session_id=session_id,
                events=first,
                state="loading" if message is None else "running",
            ),
            folder,
        )
    try:
        return _open(store, config, log, agent, llm, folder, watch, secrets, started=True)
    except Exception:
        await store.delete(session_id)
        await asyncio.to_thread(remove_tree, folder)
        raise


async def stored(storing: Coroutine[Any, Any, EventLog], folder: Path) -> EventLog:
    """Return the log of a new session; a cancellation still stores the session, which can then be resumed."""
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
    store: Store, data: Path, session_id: str, watch: Observer, events: Sequence[Event] = (), **changes: Any
) -> Session:
    """Open a session again, with fields of its configuration changed.

    The user's ``events`` are in the log before anything slow starts. Raises like ``create``, and SessionError.
    """
    log = await store.log(session_id)
    config = SessionConfig.model_validate({**(await config_of(log)).model_dump(), **changes})
    secrets = load(config.secrets)
    store.redactor.learn(secrets.values)
    folder = session_dir(data, log.id)
    agent, llm = find(config.agent), _llm(store, config, watch)
    if events:
        await log.append(*events)
    return _open(store, config, log, agent, llm, folder, watch, secrets, started=False)


async def changes(data: Path, log: EventLog) -> list[Change]:
    """Return the session's changes to its workspace so far, by path. Raises SessionError, WorkspaceError."""
    return await asyncio.to_thread((await config_of(log)).files(session_dir(data, log.id)).changes)


def sandbox_of(
    store: Store,
    files: SessionFiles,
    config: SessionConfig,
    egress: Egress | None = None,
    watch: Observer = lambda _: None,
    *,
    snapshots: bool = True,
) -> Sandbox:
    """Return an unstarted sandbox on the ``files`` of a session or a child.

    Without ``egress`` it has no network, without ``snapshots`` it takes none. ``watch`` receives the reasons for a slow
    start. Raises SandboxError, WorkspaceError.
    """

    async def save_blob(data: AsyncIterator[bytes]) -> str:
        return await store.blobs.put(data)

    def on_status(text: str) -> None:
        watch(Status(text))

    paths = files.sandbox_paths(sandboxes.SANDBOXES[config.sandbox].layer_owner)
    return sandboxes.create(
        config.sandbox,
        paths,
        save_blob,
        [Path(path) for path in config.mount_ro],
        snapshots=files.snapshots(paths, config.snapshots, store.redactor.bytes) if snapshots else None,
        egress=egress,
        image=config.image,
        writable_root=config.writable_root,
        on_status=on_status,
        withheld=[secret.partition("=")[0] for secret in config.secrets],
    )


def recorded_egress(log: EventLog, allowed: Callable[[], Collection[str]], subtask: int = 0) -> Egress:
    """Return the egress of a sandbox, which appends every decision to the log before the decision takes effect.

    ``allowed`` returns the hosts that the user allows at that moment; the sandbox belongs to ``subtask``.
    """

    async def record(event: EgressEvent) -> bool:
        try:
            await log.append(event.with_fields(subtask=subtask))
        except LeaseLost:
            return False  # a program in the background goes on while nobody runs the session
        return True

    return Egress(allowed, record)


def _llm(store: Store, config: SessionConfig, watch: Observer) -> LLM:
    def blob(digest: str) -> bytes:
        return store.blobs.path(digest).read_bytes()

    return llms.create(
        config.model, config.base_url, blobs=blob, status=lambda text: watch(Status(store.redactor.text(text)))
    )


def _open(
    store: Store,
    config: SessionConfig,
    log: EventLog,
    agent: type[Agent],
    llm: LLM,
    folder: Path,
    watch: Observer,
    secrets: Secrets,
    *,
    started: bool,
) -> Session:
    def make_llm(model: str, base_url: str | None) -> LLM:
        return _llm(store, config.model_copy(update={"model": model, "base_url": base_url}), watch)

    def allowed() -> list[str]:
        return session.state.totals.network

    def on_copy(child: SessionFiles) -> Sandbox:
        egress = recorded_egress(log, allowed, subtask=child.child)
        return sandbox_of(store, child, config, egress, watch, snapshots=False)

    files, workspace = config.files(folder), Path(config.workspace)
    programs = (programs_of(root, reader_names()) for root in (workspace, Workspace.load(folder).base))
    session = Session(
        log,
        store,
        config,
        agent,
        llm,
        sandbox_of(store, files, config, recorded_egress(log, allowed), watch),
        watch,
        make_llm,
        None if config.in_place else WorkspaceBranches(files, on_copy),
        secrets,
        frozenset[str]().union(*programs),
        started=started,
    )
    return session
