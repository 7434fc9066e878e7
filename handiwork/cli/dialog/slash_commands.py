"""The slash commands at any question: change the model or the confirmation mode, allow hosts, show help."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import get_args

from rich.console import Console
from rich.text import Text

from handiwork.cli.terminal.sanitize import exact, plain
from handiwork.events.record import Confirmation, NetworkAllowed, SettingsChanged
from handiwork.llm import create as llms
from handiwork.llm.errors import LLMError
from handiwork.log.eventlog import EventLog
from handiwork.session.user_events import network_allowed, running_commands
from handiwork.settings import model_name

Ask = Callable[[str], Awaitable[str | None]]
"""Asks the user a question; returns None if the user wants to leave."""

AT_WORK = """\
  These commands may still be running. They, and any programs they left running, could send data to
  {} at once, without asking you:"""
ALLOW = "allow anyway? (y or n) "
MODES: tuple[Confirmation, ...] = get_args(Confirmation)


COMMANDS = {
    "/model": ("NAME [BASE_URL]", "switch to another model, like openai:NAME, or NAME http://HOST:PORT/v1"),
    "/confirm": ("never|risky|always", "when to ask before actions, from the next action on"),
    "/allow": ("HOST...", "let the sandbox reach hosts: example.org, *.example.org, pypi, npm, debian, all"),
    "/help": ("", "show this list"),
}


class SlashCommands:
    """Carries out slash commands for the session of ``log``; asks a question until there is an answer.

    ``commands`` has the arguments and the description of each.
    """

    commands: Mapping[str, tuple[str, str]] = COMMANDS

    def __init__(self, log: EventLog, console: Console, ask: Ask) -> None:
        self._log: EventLog | None = log
        self._console, self._ask = console, ask

    async def answer(self, question: str) -> str | None:
        """Return the answer; None if the user leaves the session as it is."""
        while True:
            answer = await self._ask(question)
            if answer is None or answer == "q":
                return None
            if not is_command(answer):
                return answer
            self.say(await self.carry_out(*answer.split()))

    def say(self, text: str, style: str = "") -> None:
        """Print a message to the user."""
        self._console.print(Text(plain(text), style), soft_wrap=True)

    def help(self) -> str:
        """Return the list of the commands."""
        names = [f"  {name} {arguments}" for name, (arguments, _) in self.commands.items()]
        width = max(map(len, names)) + 2
        about = (about for _, about in self.commands.values())
        return "\n".join(f"{name:{width}}{text}" for name, text in zip(names, about, strict=True))

    async def carry_out(self, name: str, *arguments: str) -> str:
        """Carry out a command and return the message for the user."""
        match name, arguments:
            case "/model", (model,) | (model, _):
                base_url = arguments[1] if len(arguments) == 2 else None
                return await self._change_model(model_name(model), base_url)
            case "/confirm", (mode,) if mode in MODES:
                await self.change(SettingsChanged(confirmation=mode, source="user"))
                return f"  confirmation: {mode}"
            case "/allow", (_, *_):
                return await self._allow(arguments)
            case _ if name in self.commands:
                return self.help()
            case _:
                return f"  unknown command {name}; a message to the agent must not begin with a slash\n{self.help()}"

    async def change(self, event: SettingsChanged | NetworkAllowed) -> None:
        """Change the settings of the session."""
        assert self._log is not None
        await self._log.append(event)

    async def _allow(self, hosts: tuple[str, ...]) -> str:
        try:
            event = network_allowed(hosts)
        except ValueError as error:
            return f"  the network is unchanged: {error}"
        confirmed: list[str] = []
        while self._log and not set(running := await running_commands(self._log)) <= set(confirmed):
            self.say(AT_WORK.format(", ".join(hosts)), "yellow")
            for command in running:
                self.say(f"    {exact(command)}")
            if (await self._ask(ALLOW) or "").lower() not in ("y", "yes"):
                return "  the network is unchanged"
            confirmed = running
        await self.change(event)
        return f"  the sandbox may reach {', '.join(hosts)} from now on"

    async def _change_model(self, model: str, base_url: str | None) -> str:
        self.say(f"  looking for {model} ...", "dim")
        try:
            # In a thread: the libraries of a provider take seconds to import, and the terminal must not freeze.
            llm = await asyncio.to_thread(llms.create, model, base_url)
        except LLMError as error:
            return f"  the model is unchanged: {error}"
        await llm.close()
        await self.change(SettingsChanged(model=model, base_url=base_url, source="user"))
        return f"  model: {model}"


def is_command(text: str) -> bool:
    """Return whether the user's text is a slash command: a path like /usr/bin is none."""
    return re.match(r"/\w*(\s|$)", text) is not None
