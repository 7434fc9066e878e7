"""``handiwork run`` and ``handiwork resume``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.commands.changes import overview
from handiwork.cli.commands.sessions import find
from handiwork.cli.dialog.acceptance import offer
from handiwork.cli.dialog.prompt import Signals, TerminalPrompt
from handiwork.cli.dialog.questions import Questions
from handiwork.cli.dialog.remote_session import RemoteSession, open_remote
from handiwork.cli.dialog.web_page import Page, served
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import JsonLines
from handiwork.cli.terminal.summary import exit_code, summary
from handiwork.cli.terminal.view import View, terminal_console
from handiwork.errors import Exit, WorkspaceError
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.record import Limits
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig, config_of, title_of
from handiwork.session.open import changes_and_note, create, reopen
from handiwork.session.secrets import specification
from handiwork.session.session import Session
from handiwork.session.steps.live import Observer, Status
from handiwork.session.storage.layout import session_dir
from handiwork.session.user_events import is_stuck, rewind_event, state_of
from handiwork.settings import SettingsError, check_environment, check_flags, load, model_name
from handiwork.workspace.changes import Change
from handiwork.workspace.files.names import quoted_list

WAITING = ("loading", "finished", "rejected", "stopped")
"""The states that a session leaves only when it gets a message."""

_NAMED = 5  # missing files that a line names

STOPPING = "interrupting; press Ctrl-C again to stop at once"

Begin = Callable[[Store, Observer], Awaitable[tuple[Session | RemoteSession, int]]]
"""Opens a session; returns it with the id of the last event that was in its log before."""

UserPrompt = Callable[[State], Coroutine[Any, Any, str | None]]
"""Asks the user how to continue a session that waits or is paused.

Returns a message to the agent, "" to continue without one, None to leave the session.
"""


def run(task: str, workspace: Path, in_place: bool, as_json: bool, flags: Mapping[str, Any], web: bool) -> Exit:
    """Run the task in a new session, with ``web`` also shown in the browser. Raises SettingsError, like ``create``."""
    settings = load(flags)
    task = sys.stdin.read() if task == "-" else task
    if not task.strip():
        raise SettingsError("the task is empty: describe it in your own words")
    if not as_json and sys.stdin.isatty() and sys.stdout.isatty() and workspace.is_dir():
        offer(workspace.resolve())
    config = SessionConfig.of(settings, workspace, in_place=in_place)

    def carry_out(page: Page | None) -> Exit:
        async def begin(store: Store, watch: Observer) -> tuple[Session, int]:
            message = MessageAction(content=task)
            opened = await create(store, data_dir(), config, watch, title_of(task), message)
            if page is not None:
                page.show(opened.id)
            return opened, 0

        return asyncio.run(_session(begin, True, as_json))

    if not web:
        return carry_out(None)
    with served() as page:
        code = carry_out(page)
        page.wait()
        return code


def resume(session: str | None, message: str | None, rewind: bool, as_json: bool, flags: Mapping[str, Any]) -> Exit:
    """Resume a session (None: the newest), with the settings in ``flags`` changed. Raises like ``run``.

    ``rewind`` takes a stuck session back to before its loop; raises SettingsError if the session is not stuck.
    """
    check_environment()
    check_flags(flags)

    async def begin(store: Store, watch: Observer) -> tuple[Session | RemoteSession, int]:
        log = await find(store, session)
        changes = {key: value for key, value in flags.items() if value is not None and not key.startswith("max_")}
        changes |= await model_changes(log, flags)
        changes["limits"] = await _limits(log, flags)
        changes["secrets"] = await _secrets(log, changes.get("secrets") or ())
        state = await state_of(log)
        if rewind and not is_stuck(state):
            raise SettingsError(f"session {log.id} is not stuck in a loop: resume it without --rewind")
        new_events: list[Event] = [rewind_event(state)] if rewind else []
        if message is not None:
            new_events.append(MessageAction(content=message, source="user", subtask=state.active))
        head = await log.head()
        opened: Session | RemoteSession
        if await log.holder() is None:
            opened = await reopen(store, data_dir(), log.id, watch, new_events, **changes)
        else:
            opened = await open_remote(log, watch, changes)
            if new_events:
                await log.append(*new_events)
        return opened, head

    return asyncio.run(_session(begin, message is not None, as_json))


async def _session(begin: Begin, message_sent: bool, as_json: bool) -> Exit:
    """Open a session, run it until it ends or the user leaves it, and show its summary.

    ``message_sent`` means that the user's message is already in the log.
    """
    interactive = not as_json and sys.stdout.isatty()
    console = terminal_console()
    view = JsonLines() if as_json else View(console, live=interactive and not console.is_dumb_terminal)
    signals = Signals(cast("asyncio.Task[Any]", asyncio.current_task()).cancel)
    opened: Session | RemoteSession | None = None
    with signals.watched():
        try:
            async with Store.open(data_dir()) as store:
                with view:
                    opened, head = await begin(store, view)
                    view.open(opened.id, head)
                    if isinstance(view, View) and head == 0:
                        view.print(_missing_lines(opened))
                    async with opened.hold_lease():
                        prompt = None
                        if isinstance(view, View) and interactive and sys.stdin.isatty():
                            prompt = Questions(opened, view, TerminalPrompt(signals))
                        state = await run_interactive(opened, None, signals, view, prompt)
                if not view.stepped and not message_sent and state.agent_state in WAITING:
                    status = "has no task yet" if state.agent_state == "loading" else f"is {state.agent_state}"
                    raise SettingsError(f'session {opened.id} {status}: give it a task with --message "..."')
                if isinstance(view, View):
                    await _show_end(view, opened, state)
                return exit_code(state)
        except asyncio.CancelledError:
            say(
                f"stopped; continue with `handiwork resume {opened.id}`"
                if opened
                else "stopped before the session began"
            )
            return Exit.INTERRUPTED


def _missing_lines(opened: Session | RemoteSession) -> list[Text]:
    """Return a line that names files which the agent's copy lacks."""
    paths = opened.config.files(session_dir(data_dir(), opened.id)).missing
    if not paths:
        return []
    reason = "unreadable, or ignored by git and either secret by the name or over 50 MB"
    return [Text(f"not in the agent's copy: {quoted_list(paths, _NAMED)} ({reason})", "dim")]


async def run_interactive(
    opened: Session | RemoteSession, message: str | None, signals: Signals, watch: Observer, prompt: UserPrompt | None
) -> State:
    """Run the session until it ends, or waits and ``prompt`` returns None; return its state.

    The first signal pauses the session, the second one cancels this call. Without ``prompt`` the user is not asked.
    """
    while True:
        state = await _run(opened, message, signals, watch)
        if prompt is None or signals.ending or not _is_waiting(state):
            return state
        resumed, answer = await await_answer(opened, prompt(state))
        if answer is None and not resumed:
            return state
        message = answer or None


def _is_waiting(state: State) -> bool:
    """Return whether the session waits for the user or is paused: by the user, by a limit, or because it is stuck."""
    return state.agent_state in ("awaiting_user_input", "awaiting_user_confirmation", "paused")


async def await_answer(
    opened: Session | RemoteSession, prompt: Coroutine[Any, Any, str | None]
) -> tuple[bool, str | None]:
    """Wait for the answer, or until another client resumes the session; return whether one did, and the answer."""
    reply, resumed = asyncio.create_task(prompt), asyncio.create_task(opened.wait_until_resumed())
    try:
        await asyncio.wait({reply, resumed}, return_when=asyncio.FIRST_COMPLETED)
        return (False, reply.result()) if reply.done() else (True, None)
    finally:
        reply.cancel()
        resumed.cancel()
        await asyncio.gather(reply, resumed, return_exceptions=True)


async def _run(opened: Session | RemoteSession, message: str | None, signals: Signals, watch: Observer) -> State:
    run = asyncio.create_task(opened.run(message))
    pause: asyncio.Task[object] | None = None

    def stop() -> None:
        nonlocal pause
        if pause is None:
            watch(Status(STOPPING))
            paused = ChangeAgentStateAction(agent_state="paused", source="user")
            pause = asyncio.create_task(opened.log.append(paused))
        else:
            run.cancel()

    with signals.handled_by(stop):
        try:
            state = await run
        finally:
            run.cancel()
            if pause is not None:
                await asyncio.wait([pause])
    if pause is not None:
        pause.result()
    return state


async def _show_end(view: View, opened: Session | RemoteSession, state: State) -> None:
    file_changes, note = list[Change](), ""
    try:
        file_changes, note = await changes_and_note(data_dir(), opened.log)
    except WorkspaceError as error:
        say(f"cannot show the changes: {error}")
    has_commits = opened.config.files(session_dir(data_dir(), opened.id)).has_commits()
    to_apply = has_commits or (bool(file_changes) and not opened.config.in_place)
    view.print([*overview(file_changes, opened.id), *summary(state, opened.id, to_apply)])
    if note:
        say(note)


async def model_changes(log: EventLog, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of the session's model by the flags; a server's address alone is of the model that it has.

    Raises SettingsError for an address that the model does not use.
    """
    model, base_url = flags.get("model"), flags.get("base_url")
    if model is None and base_url is None:
        return {}
    name = (await config_of(log)).model if model is None else model_name(model)
    if base_url is not None and name.startswith(("local:", "scripted:")):
        raise SettingsError(f"--base-url needs a model on a server, not {name}: add --model")
    return {"model": name, "base_url": base_url}


async def _limits(log: EventLog, flags: Mapping[str, Any]) -> Limits:
    """Return the session's limits, overridden by those of the flags."""
    limits = {key.removeprefix("max_"): value for key, value in flags.items() if key.startswith("max_")}
    changes = {key: value for key, value in limits.items() if value is not None}
    return (await config_of(log)).limits.model_copy(update=changes)


async def _secrets(log: EventLog, others: Iterable[str]) -> tuple[str, ...]:
    """Return the sources of the session's secrets, replaced and extended by ``others``."""
    specifications = [*(await config_of(log)).secrets, *map(specification, others)]
    return tuple({text.partition("=")[0]: text for text in specifications}.values())
