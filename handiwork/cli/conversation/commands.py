"""The slash commands of a conversation: its changes, its cost, its steps, and other sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from handiwork.cli.commands.changes import changed_paths, overview
from handiwork.cli.commands.sessions import row, state_words, with_full_text
from handiwork.cli.completion import session_ids
from handiwork.cli.conversation.current_session import CurrentSession
from handiwork.cli.dialog.slash_commands import COMMANDS, MODES, Ask, SlashCommands
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.summary import cost_lines
from handiwork.cli.terminal.transcript import Transcript
from handiwork.cli.terminal.view import View
from handiwork.errors import HandiworkError
from handiwork.events.record import NetworkAllowed, SettingsChanged, StepStarted
from handiwork.llm import availability
from handiwork.log.eventlog import EventLog
from handiwork.paths import data_dir
from handiwork.session.apply import apply_session, bring_commits, undo_session
from handiwork.session.config import config_of
from handiwork.session.open import changes
from handiwork.session.storage.layout import session_dir
from handiwork.session.time_travel.fork import fork
from handiwork.session.user_events import state_of

LISTED = 10
"""The number of sessions listed."""
SWITCHING = ("/resume", "/fork", "/new")
"""The commands after which the conversation has another session."""
PRESETS = ("pypi", "npm", "debian", "all")
AT_WORK = "  the agent is at work: press Ctrl-C first"
NO_SESSION = "  there is no session yet: begin one with a message"


class ConversationCommands(SlashCommands):
    """Carries out the slash commands for the conversation's session, or for the one that its first message begins."""

    commands: Mapping[str, tuple[str, str]] = {
        "/diff": ("", "show what the session has changed"),
        "/apply": ("", "bring the changes into your folder"),
        "/undo": ("", "undo the last /apply"),
        "/plan": ("[off]", "only read until you accept the agent's plan by Enter; off ends that without a plan"),
        "/show": ("EVENT", "show the step of an event whole"),
        "/cost": ("", "show steps, tokens, cost and time"),
        "/sessions": ("", "list the newest sessions"),
        "/resume": ("SESSION", "continue another session"),
        "/fork": ("[EVENT]", "continue in a copy of the session, from an event or from now"),
        "/new": ("", "begin a new session with the next message"),
        **COMMANDS,
    }

    def __init__(self, session: CurrentSession, view: View, ask: Ask) -> None:
        self._log, self._console, self._ask = None, view.console, ask
        self._session, self._view = session, view

    def arguments(self, command: str) -> Iterable[str]:
        """Return values that a command may have as its argument."""
        match command:
            case "/model":
                return [name.replace("NAME", "") for name, _, _ in availability.models()]
            case "/confirm":
                return MODES
            case "/plan":
                return ("off",)
            case "/allow":
                return PRESETS
            case "/resume":
                return [session for session, _ in session_ids("")]
            case _:
                return ()

    def say(self, text: str, style: str = "") -> None:
        """Print a message to the user."""
        self._view.print([Text(plain(text), style)])

    async def carry_out(self, name: str, *arguments: str) -> str:
        """Carry out a command and return the message for the user."""
        self._log = await self._session.log()
        try:
            match name, arguments:
                case "/diff" | "/apply" | "/undo" | "/cost", ():
                    return NO_SESSION if self._log is None else await self._of_session(name, self._log)
                case "/plan", () | ("off",):
                    await self.change(SettingsChanged(plan_mode=not arguments, source="user"))
                    return f"  plan mode: {'off' if arguments else 'on'}"
                case "/show", (number,) if number.isdecimal():
                    return NO_SESSION if self._log is None else await self._show(self._log, int(number))
                case "/sessions", ():
                    return await self._list()
                case "/resume", (session,):
                    return await self._switch((await self._session.store.log(session)).id)
                case "/new", ():
                    return await self._switch(None)
                case "/fork", () | (_,):
                    return NO_SESSION if self._log is None else await self._fork(self._log, *arguments)
                case "/model", ():
                    return self._models()
                case _:
                    return await super().carry_out(name, *arguments)
        except HandiworkError as error:
            return f"  {error}"

    async def change(self, event: SettingsChanged | NetworkAllowed) -> None:
        """Change the settings of the session, or those of the session to begin."""
        if self._log is not None:
            await self._log.append(event)
        config = self._session.config
        changed: dict[str, Any] = (
            {"allow_net": (*config.allow_net, *event.hosts)}
            if isinstance(event, NetworkAllowed)
            else {"model": event.model, "base_url": event.base_url}
            if event.model
            else {"confirmation": event.confirmation}
            if event.confirmation
            else {"plan_mode": event.plan_mode}
        )
        self._session.config = config.model_copy(update=changed)

    async def _of_session(self, name: str, log: EventLog) -> str:
        match name:
            case "/diff":
                self._view.print(overview(await changes(data_dir(), log), log.id))
                return ""
            case "/apply":
                return await self._apply(log)
            case "/undo":
                workspace, undone = await undo_session(data_dir(), log)
                self._view.print(changed_paths(("restored", undone.restored), ("deleted", undone.deleted)))
                return f"  files as before the apply in {workspace}: {len(undone.restored) + len(undone.deleted)}"
            case _:
                self._view.print(cost_lines(await state_of(log)))
                return ""

    async def _apply(self, log: EventLog) -> str:
        workspace, applied = await apply_session(data_dir(), log)
        self._view.print(changed_paths(("written", applied.written), ("deleted", applied.deleted)))
        done = [*applied.warnings, f"files changed in {workspace}: {len(applied.written) + len(applied.deleted)}"]
        if self._session.working:
            if await asyncio.to_thread((await config_of(log)).files(session_dir(data_dir(), log.id)).has_commits):
                done.append("its commits follow with an /apply once the agent has stopped")
        else:
            commits = await bring_commits(self._session.store, data_dir(), log)
            branch = f"commits are on branch {commits.branch}" if commits.branch else ""
            done += filter(None, (commits.note, commits.error, branch))
        return "\n".join(f"  {line}" for line in done)

    async def _show(self, log: EventLog, number: int) -> str:
        events = await log.read()
        if not 0 < number <= len(events):
            return f"  the session has the events 1 to {len(events)}"
        steps = [event.id for event in events if isinstance(event, StepStarted)]
        first = max((step for step in steps if step <= number), default=number)
        last = min((step for step in steps if step > number), default=len(events) + 1)
        transcript = Transcript(log.id, full=True, console=self._console)
        for event in events[: last - 1]:
            lines = transcript.lines(await with_full_text(self._session.store, event))
            if event.id >= first:
                self._view.print(lines)
        return ""

    async def _list(self) -> str:
        found = await self._session.store.sessions(limit=LISTED, archived=False)
        for info in found:
            mark = Text("* " if info.id == self._session.id else "  ")
            self._view.print([mark.append_text(row(info, await state_words(self._session.store, info)))])
        return "  /resume SESSION continues one" if found else NO_SESSION

    async def _switch(self, session: str | None) -> str:
        if self._session.working:
            return AT_WORK
        await self._session.switch(session)
        if session is None:
            return "  the next message begins a new session"
        info = await (await self._session.store.log(session)).info()
        self._view.print([row(info, await state_words(self._session.store, info))])
        return "  write a message, or press Enter to resume it if it is paused"

    async def _fork(self, log: EventLog, at: str = "") -> str:
        if self._session.working:
            return AT_WORK
        if at and not at.isdecimal():
            return self.help()
        event = int(at or await log.head())
        forked = await fork(self._session.store, data_dir(), log, event)
        return f"  a copy of session {log.id} from event {event}\n{await self._switch(forked.id)}"

    def _models(self) -> str:
        state = self._session.state
        now = state.model if state is not None else self._session.config.model
        others = (f"  {name:28}{about}" for name, _, about in availability.models())
        return "\n".join([f"  now: {plain(now)}", *others])
