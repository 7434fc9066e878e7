"""``handiwork`` without a command: a conversation at a terminal, or the task that it reads from a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, cast

from rich.console import RenderableType
from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.commands.run import run
from handiwork.cli.conversation.commands import SWITCHING, ConversationCommands
from handiwork.cli.conversation.completion import InputCompleter, without_marks
from handiwork.cli.conversation.current_session import CurrentSession
from handiwork.cli.conversation.input_line import InputLine
from handiwork.cli.dialog.acceptance import offer
from handiwork.cli.dialog.prompt import Signals
from handiwork.cli.dialog.slash_commands import is_command
from handiwork.cli.errors import explain
from handiwork.cli.terminal.layout import markdown_lines
from handiwork.cli.terminal.pictures import PictureProtocol, picture_protocol, picture_sequence
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.summary import end_lines
from handiwork.cli.terminal.view import View, terminal_console
from handiwork.errors import Exit, HandiworkError
from handiwork.events.base import Event, Part
from handiwork.events.observation import IPythonRunCellObservation
from handiwork.llm import create as llms
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig
from handiwork.session.open import changes
from handiwork.settings import load
from handiwork.workspace.changes import Change

OUTPUT_LINES = 16
"""The number of lines shown of one output."""
WELCOME = "Type a task. / shows the commands, @ completes a path, Ctrl-C interrupts the agent, Ctrl-D leaves."
NEXT = "what next?"
HINTS = {
    "awaiting_user_input": "your answer",
    "awaiting_user_confirmation": "Enter asks again; a message refuses",
    "paused": "how shall it continue? (Enter: as before)",
    "error": "Enter tries again, /model NAME takes another model",
}
ACCEPT = "Enter accepts the plan; or say what to change"
AT_WORK = "a message for its next step"


def conversation(usage: str) -> Exit:
    """Talk with the agent about the current directory; without a terminal, run the task of stdin or print ``usage``."""
    has_cursor = os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    if sys.stdin.isatty() and sys.stdout.isatty() and has_cursor:
        settings, folder = load({}), Path.cwd()
        offer(folder)
        return asyncio.run(_converse(SessionConfig.of(settings, folder)))
    task = "" if sys.stdin.isatty() else sys.stdin.read()
    if not task.strip():
        print(usage)  # noqa: T201
        return Exit.USAGE
    return run(task, Path(), in_place=False, as_json=False, flags={}, web=False)


async def _converse(config: SessionConfig) -> Exit:
    cancel = cast("asyncio.Task[Any]", asyncio.current_task()).cancel
    signals = Signals(cancel)
    with signals.watched():
        async with Store.open(data_dir()) as store:
            conversation = Conversation(store, config)
            try:
                # Ctrl-C is a signal while no line is read, and a key otherwise.
                with signals.handled_by(lambda: cancel() if signals.ending else conversation.interrupt()):
                    await conversation.talk()
            except asyncio.CancelledError:
                return Exit.INTERRUPTED
    return Exit.FINISHED


class ConversationView(View):
    """Shows a session above the input line, which also shows the agent's current activity."""

    def __init__(self, file: InputLine, show_pictures: Callable[[Sequence[Part]], None]) -> None:
        super().__init__(terminal_console(cast("Any", file)), live=False)
        self._show_pictures = show_pictures

    def reset(self, after: int = 0) -> None:
        """Begin with a session; its outputs are folded, and ``/show`` opens them."""
        super().reset(after)
        self.transcript.outputs.most, self.transcript.outputs.opens = OUTPUT_LINES, "/show {event}"

    def _show_status(self, text: str) -> None:
        self.activity.status = plain(text)

    def _show_event(self, event: Event) -> None:
        super()._show_event(event)
        if isinstance(event, IPythonRunCellObservation) and event.images and event.id > self.after:
            self._show_pictures(event.images)


class Conversation:
    """Reads the user's lines and gives them to the agent, to commands, or to questions."""

    def __init__(self, store: Store, config: SessionConfig) -> None:
        folder = Path(config.workspace)
        self._folder, self._tasks = folder, set[asyncio.Task[None]]()
        abouts = {name: about for name, (_, about) in ConversationCommands.commands.items()}
        completer = InputCompleter(folder, abouts, lambda command: self._commands.arguments(command))
        self._line = InputLine(data_dir() / "history", completer, self._above, self._hint, self.interrupt)
        self._view = ConversationView(self._line, self._begin_pictures)
        self._blobs = store.blobs
        self._pictures: PictureProtocol | None = picture_protocol()
        self._session = CurrentSession(store, config, self._view, self._line.ask, self._show_end, self._warn)
        self._commands = ConversationCommands(self._session, self._view, self._line.ask)
        self._shown: list[Change] = []

    async def talk(self) -> None:
        """Talk until the user leaves."""
        config = self._session.config
        self._view.print([Text(f"{config.model} · {config.agent} · {config.sandbox} · {self._folder}", "dim")])
        self._view.print([Text(WELCOME, "dim")])
        self._begin(self._check_model())
        try:
            while (text := await self._line.next_line()) is not None:
                if is_command(text):
                    self._view.print([Text(f"\n{text.strip()}", "bold")])
                    task = self._begin(self._carry_out(text))
                    if text.split()[0] in SWITCHING:
                        await task  # the next line is for that session
                elif text.strip():
                    await self._session.send(without_marks(text.strip(), self._folder))
                else:
                    await self._session.resume()
        finally:
            for task in self._tasks:
                task.cancel()
            await self._session.leave()
        if (session := self._session.id) is not None:
            self._view.print([Text(f"session {session}: handiwork resume, diff and apply continue from here", "dim")])

    def interrupt(self) -> None:
        """Interrupt the agent, or remove the text of the line."""
        if self._session.working:
            self._view.activity.status = "interrupting; press Ctrl-C again to stop at once"
            self._begin(self._stop())
        elif not self._line.clear():
            self._view.print([Text("  Ctrl-D leaves", "dim")])

    async def _carry_out(self, text: str) -> None:
        answer = await self._commands.carry_out(*text.split())
        if answer:
            self._commands.say(answer)

    async def _check_model(self) -> None:
        """Tell at once about a model that cannot work; importing the libraries of a provider takes seconds."""
        try:
            llm = await asyncio.to_thread(llms.create, self._session.config.model, self._session.config.base_url)
            await llm.close()
        except HandiworkError as error:
            self._warn(f"{error}\nChoose another model with /model NAME.")

    def _begin_pictures(self, images: Sequence[Part]) -> None:
        self._begin(self._show_pictures(images))

    async def _show_pictures(self, images: Sequence[Part]) -> None:
        """Show the pictures of a notebook, if the terminal can."""
        for blob in (image.blob for image in images):
            if blob is not None and self._pictures is not None:
                data = await self._blobs.get(blob)
                columns = self._view.console.width
                if sequence := await asyncio.to_thread(picture_sequence, data, self._pictures, columns):
                    self._line.write(f"{sequence}\n")

    async def _show_end(self, log: EventLog, state: State) -> None:
        if state.agent_state in ("finished", "rejected") and (message := state.outputs.get("message")):
            self._view.print([Text(), *markdown_lines(str(message), self._view.console)])
        file_changes: list[Change] = []
        try:
            file_changes = await changes(data_dir(), log)
        except HandiworkError as error:
            self._warn(f"cannot show the changes: {error}")
        new = file_changes if file_changes != self._shown else []
        self._shown = file_changes
        self._view.print(end_lines(state, new))

    def _above(self) -> list[RenderableType]:
        if not self._session.working:
            return [Text()]
        state, activity = self._session.state, self._view.activity
        activity.status = activity.status or ("opening the session" if state is None else "")
        return [Text(), activity]

    def _hint(self) -> str:
        if self._session.working:
            return AT_WORK
        state = self._session.state
        if self._session.id is None:
            return "what shall the agent do?"
        if self._session.proposes_plan:
            return ACCEPT
        return HINTS.get(state.agent_state, NEXT) if state is not None else NEXT

    async def _stop(self) -> None:
        await self._session.interrupt()
        if not self._session.working:
            self._view.print([Text("  stopped; a message continues, and so does Enter", "dim")])

    def _warn(self, text: str) -> None:
        self._view.print([Text(plain(f"  {text}"), "red")])

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - a command that fails must not end the conversation
                self._warn(explain(error)[1])

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
