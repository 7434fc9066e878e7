"""The input line below a conversation: the agent's activity, a question if there is one, and the user's text."""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import RenderableType
from rich.text import Text

from handiwork.cli.dialog.slash_commands import is_command
from handiwork.cli.terminal.view import terminal_console

PROMPT = "> "
REFRESH = 0.2
"""Seconds between two drawings of the agent's activity."""
_COMPLETES = re.compile(r"/[^\n]*|(?:.*\s)?@\S*", re.DOTALL)
"""The text before the cursor while the completions are shown unasked."""


class InputLine(io.TextIOBase):
    """Reads lines from the terminal while other text is written above them; it is the terminal's file for a Console.

    ``activity`` returns the text above the line, ``hint`` the text in an empty one; ``interrupt`` is called for
    Ctrl-C, after a pending question has been dropped. Lines are kept in the file ``history``.
    """

    def __init__(
        self,
        history: Path,
        completer: Completer,
        activity: Callable[[], list[RenderableType]],
        hint: Callable[[], str],
        interrupt: Callable[[], None],
    ) -> None:
        self._activity, self._interrupt = activity, interrupt
        self._questions: list[tuple[str, asyncio.Future[str | None]]] = []
        self._draft, self._is_answer = "", False
        self._output = create_output()
        if isinstance(self._output, Vt100_Output):
            self._output.enable_cpr = False  # the answers of slow terminals would end up in the user's text
        history.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
        self._session: PromptSession[str] = PromptSession(
            self._message,
            history=FileHistory(str(history)),
            completer=completer,
            complete_in_thread=True,
            complete_while_typing=Condition(
                lambda: _COMPLETES.fullmatch(get_app().current_buffer.document.text_before_cursor) is not None
            ),
            reserve_space_for_menu=6,
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            placeholder=lambda: [("fg:ansibrightblack", "" if self._questions else hint())],
            key_bindings=self._bindings(),
            erase_when_done=True,
            refresh_interval=REFRESH,
            output=self._output,
        )

    async def next_line(self) -> str | None:
        """Return the user's next line that does not answer a question; None for Ctrl-D in an empty line."""
        while True:
            draft, self._draft = ("", self._draft) if self._questions else (self._draft, "")
            try:
                text = await self._session.prompt_async(default=draft, handle_sigint=False)
            except EOFError:
                if not self.drop_question():
                    return None
                continue
            if not self._is_answer or is_command(text):
                return text
            self._settle(text.strip())

    async def ask(self, question: str) -> str | None:
        """Return the answer to a question; None for Ctrl-C or Ctrl-D. A line begun before the question comes back."""
        buffer, answer = self._session.default_buffer, asyncio.get_running_loop().create_future()
        if not self._questions:
            self._draft = buffer.text
        buffer.reset()
        entry = (question.strip(), answer)
        self._questions.append(entry)
        self.redraw()
        try:
            return await answer
        finally:
            if entry in self._questions:
                self._questions.remove(entry)
            if not self._questions and self._session.app.is_running and not buffer.text:
                buffer.document, self._draft = Document(self._draft), ""
            self.redraw()

    def drop_question(self) -> bool:
        """Answer the newest question with None; return whether there was one."""
        return self._settle(None)

    def redraw(self) -> None:
        """Show a change above the line."""
        self._session.app.invalidate()

    def write(self, text: str, /) -> int:
        """Write the text above the line."""
        app = self._session.app
        if app.is_running:
            app.renderer.erase()
        self._output.write_raw(text)
        self._output.flush()
        if app.is_running:
            app.invalidate()
        return len(text)

    def isatty(self) -> bool:
        """Return true: it is the terminal."""
        return True

    def _settle(self, answer: str | None) -> bool:
        while self._questions:
            _, future = self._questions.pop()
            if not future.done():
                future.set_result(answer)
                return True
        return False

    def _message(self) -> ANSI:
        file = io.StringIO()
        console = terminal_console(file, is_terminal=True)
        lines = self._activity()
        if self._questions:
            lines.append(Text(self._questions[-1][0], "bold"))
        for line in lines:
            console.print(line)
        return ANSI(f"{file.getvalue()}{PROMPT}")

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        def accept(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            self._is_answer = bool(self._questions)
            if self._is_answer:
                event.app.exit(result=buffer.text)  # no answer is kept in the history
            else:
                buffer.validate_and_handle()

        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        def interrupt(event: KeyPressEvent) -> None:
            if not self.drop_question():
                self._interrupt()

        bindings.add("enter", filter=~is_searching)(accept)
        bindings.add("c-j", filter=~is_searching)(accept)  # Enter, if it was pressed before the line was there
        bindings.add("escape", "enter")(new_line)
        bindings.add("c-c")(interrupt)
        return bindings

    def clear(self) -> bool:
        """Remove the text of the line; return whether there was any."""
        had_text = bool(self._session.default_buffer.text)
        self._session.default_buffer.reset()
        return had_text
