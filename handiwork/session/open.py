"""Create or reopen a session from its parts: log, workspace, sandbox, model and agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any

from handiwork.agents.base import Agent
from handiwork.agents.micro.catalog import CatalogProblem, MicroCatalog, read_catalog
from handiwork.agents.registry import find
from handiwork.context.discovery import accepted_agents, of_repository
from handiwork.context.trust import Trust
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
from handiwork.session.conventions import Conventions, install_skills
from handiwork.session.mcp.connection import MCPOptions
from handiwork.session.mcp.server_log import ServerLog
from handiwork.session.mcp.servers import MCPServers
from handiwork.session.secrets import Secrets, load
from handiwork.session.session import Session
from handiwork.session.skills import load as load_skills
from handiwork.session.steps.code_search import CodeSearch
from handiwork.session.steps.live import Observer, Status
from handiwork.session.storage.branches import WorkspaceBranches
from handiwork.session.storage.layout import claimed, session_dir
from handiwork.settings import load_hooks
from handiwork.tasks import run_to_end
from handiwork.workspace.apply.journal import undo_cut_apply
from handiwork.workspace.changes import Change, with_moved_files
from handiwork.workspace.copy import Workspace
from handiwork.workspace.files.names import quoted_list
from handiwork.workspace.in_place import recover
from handiwork.workspace.session_files import SessionFiles
from handiwork.workspace.snapshots.object_store import remove_tree

_NAMED = 3  # ignored files that a note names


async def create(
    store: Store,
    data: Path,
    config: SessionConfig,
    watch: Observer,
    title: str,
    message: MessageAction | None = None,
    marks: Sequence[str] = (),
    llm: LLM | None = None,
    *,
    conventions: bool = True,
) -> Session:
    """Create a session with a copy of the workspace, and the user's first message in its log.

    The log has the session with its message or not at all, and only once its files are complete: a session that is
    listed can be resumed, whenever this process is killed. Its folder then has the files ``marks``. ``llm`` is its
    first model; None creates the model from its name. Without ``conventions``, as in evaluations, the session loads no
    AGENTS.md, skill, devcontainer.json or knowledge of anybody. Raises SecretError, AgentNotFoundError, LLMError,
    WorkspaceError, OwnSkillsError.
    """
    secrets = load(config.secrets)
    store.redactor.learn(secrets.values)
    catalog = catalog_of(config, Path(config.workspace), data, watch) if conventions else read_catalog(user=False)
    agent, llm = find(config.agent, catalog), llm or _llm(store, config, watch)
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
        await _copy(files, data, config, folder, marks)
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
        return _open(
            store, config, log, agent, llm, folder, watch, secrets, catalog, read_at=None, conventions=conventions
        )
    except Exception:
        await store.delete(session_id)
        await asyncio.to_thread(remove_tree, folder)
        raise


async def _copy(files: SessionFiles, data: Path, config: SessionConfig, folder: Path, marks: Sequence[str]) -> None:
    """Make the session's files in its folder; if that fails, nothing remains."""
    try:
        await asyncio.to_thread(recover, data, Path(config.workspace))
        await run_to_end(asyncio.to_thread(files.create))  # a thread would go on, and make the removed folder again
        for mark in marks:
            (folder / mark).touch(mode=0o600)
    except BaseException:
        await asyncio.to_thread(remove_tree, folder)
        raise


async def stored(storing: Coroutine[Any, Any, EventLog], folder: Path) -> EventLog:
    """Return the log of a new session; a cancellation still stores the session, which can then be resumed."""
    task = asyncio.create_task(storing)
    try:
        return await run_to_end(task)
    finally:
        if task.done() and not task.cancelled() and task.exception() is not None:
            await asyncio.to_thread(remove_tree, folder)


async def reopen(
    store: Store, data: Path, session_id: str, watch: Observer, events: Sequence[Event] = (), **changes: Any
) -> Session:
    """Open a session again, with fields of its configuration changed.

    The user's ``events`` are in the log before anything slow starts. Raises like ``create``, and SessionError,
    SettingsError.
    """
    log = await store.log(session_id)
    head = await log.head()
    config = SessionConfig.model_validate({**(await config_of(log)).model_dump(), **changes, "hooks": load_hooks()})
    secrets = load(config.secrets)
    store.redactor.learn(secrets.values)
    folder = session_dir(data, log.id)
    catalog = catalog_of(config, Workspace.load(folder).base, data, watch)
    agent, llm = find(config.agent, catalog), _llm(store, config, watch)
    if events:
        await log.append(*events)
    return _open(store, config, log, agent, llm, folder, watch, secrets, catalog, read_at=head, conventions=True)


def catalog_of(config: SessionConfig, workspace: Path, data: Path, watch: Observer = lambda _: None) -> MicroCatalog:
    """Return the session's micro agents and knowledge: the user's, those of packages, and a repository's accepted ones.

    ``workspace`` is the user's directory or the session's copy of it, ``data`` the data folder. ``watch`` receives a
    line for each file that is broken. Raises TrustError, WorkspaceError.
    """
    source = Path(config.workspace)
    findings = of_repository(source, Trust(data), copy=workspace)
    catalog = read_catalog(accepted_agents(findings, source))
    for problem in catalog.problems:
        watch(Status(str(problem)))
    # The session itself reports conventions that are not accepted; here they explain why an agent is not found.
    waiting = [one for one in findings if one.state != "on request"]
    catalog.problems.extend(CatalogProblem(one.convention.path, 0, one.why) for one in waiting)
    return catalog


async def changes(data: Path, log: EventLog) -> list[Change]:
    """Return the session's changes to its workspace so far, by path. Raises SessionError, WorkspaceError."""
    return await asyncio.to_thread((await config_of(log)).files(session_dir(data, log.id)).changes)


async def changes_and_note(data: Path, log: EventLog) -> tuple[list[Change], str]:
    """Return the session's changes, and a sentence about others, which stay in it because git ignores the files.

    The sentence is "" without any. Raises SessionError, WorkspaceError.
    """
    found, note = await all_changes_and_note(data, log)
    return [change for change in found if not change.ignored], note


async def all_changes_and_note(data: Path, log: EventLog, *, moved: bool = True) -> tuple[list[Change], str]:
    """Return the same with the ignored changes among the others. Raises SessionError, WorkspaceError.

    Unless ``moved``, as for a commit, whose history keeps the old file, ignored files that were moved stay ignored.
    """
    files = (await config_of(log)).files(session_dir(data, log.id))
    found = await asyncio.to_thread(files.changes, ignored=True)
    if moved:
        found = await asyncio.to_thread(with_moved_files, found)
    ignored = [change.path for change in found if change.ignored]
    return found, _ignored_note(ignored) if files.keeps_source else ""


def _ignored_note(paths: list[str]) -> str:
    if not paths:
        return ""
    number = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    if len(paths) > _NAMED:
        paths = list(dict.fromkeys(path.partition("/")[0] + "/" if "/" in path else path for path in paths))
    return f"git ignores {number} that the session changed, left out: {quoted_list(paths, _NAMED)}"


def sandbox_of(
    store: Store,
    files: SessionFiles,
    config: SessionConfig,
    egress: Egress | None = None,
    watch: Observer = lambda _: None,
    *,
    snapshots: bool = True,
    skills: Sequence[Path] = (),
) -> Sandbox:
    """Return an unstarted sandbox on the ``files`` of a session or a child.

    Without ``egress`` it has no network, without ``snapshots`` it takes none. ``skills`` are folders that it can read
    besides those of the configuration. ``watch`` receives the reasons for a slow start. Raises SandboxError,
    WorkspaceError, OwnSkillsError.
    """

    def on_status(text: str) -> None:
        watch(Status(text))

    paths = files.sandbox_paths(sandboxes.SANDBOXES[config.sandbox].layer_owner)
    return sandboxes.create(
        config.sandbox,
        paths,
        store.blobs.put,
        [*map(Path, config.mount_ro), *skills],
        snapshots=files.snapshots(paths, config.snapshots, store.redactor.bytes) if snapshots else None,
        egress=egress,
        image=config.image,
        writable_root=config.writable_root,
        on_status=on_status,
        skills=[file.for_sandbox() for file in load_skills(config.skills)],
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
            return False  # a background program keeps running while no process runs the session
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
    catalog: MicroCatalog,
    *,
    read_at: int | None,
    conventions: bool,
) -> Session:
    def make_llm(model: str, base_url: str | None) -> LLM:
        return _llm(store, config.model_copy(update={"model": model, "base_url": base_url}), watch)

    def allowed() -> list[str]:
        return session.state.totals.network

    def on_copy(child: SessionFiles) -> Sandbox:
        egress = recorded_egress(log, allowed, subtask=child.child)
        return sandbox_of(store, child, config, egress, watch, snapshots=False, skills=skills)

    def make_mcp(sandbox: Callable[[], Awaitable[Sandbox]]) -> MCPServers | None:
        options = MCPOptions(
            secrets,
            recorded_egress(log, allowed),
            store.blobs.put,
            lambda server: ServerLog(folder, server, store.redactor),
            store.redactor.text,
        )
        return MCPServers(config.mcp, options, sandbox, lambda text: watch(Status(text))) if config.mcp else None

    files, workspace = config.files(folder), Path(config.workspace)
    skills = install_skills(store.folder, workspace) if conventions else []
    base = Workspace.load(folder).base
    programs = (programs_of(root, reader_names()) for root in (workspace, base))
    session = Session(
        log,
        store,
        config,
        agent,
        llm,
        sandbox_of(store, files, config, recorded_egress(log, allowed), watch, skills=skills),
        watch,
        make_llm,
        None if config.in_place else WorkspaceBranches(files, on_copy),
        secrets,
        frozenset[str]().union(*programs),
        catalog,
        make_mcp,
        lambda branch: CodeSearch(files.of_child(branch)).run,
        conventions=Conventions(config, base, store.folder) if conventions else None,
        started=read_at is None,
        read_at=read_at,
    )
    return session
