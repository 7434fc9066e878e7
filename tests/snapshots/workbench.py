"""Sessions that run commands in bubblewrap, and what their files were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import CompletionEvent
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create, reopen

LIST = (
    "find . ~ -path ./.git -prune -o -printf '%P %y %m %l ' -exec sh -c "
    '\'[ -f "$1" ] && [ ! -L "$1" ] && sha256sum < "$1" || echo\' _ {} \\; | sort'
)
"""Prints what there is in the workspace and the home: type, mode, target and digest of each path."""


def bash(command: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}


class Workbench:
    """One data folder and a project of three files."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.store, self.data, self.folder = store, folder / "data", folder
        self.project = folder / "project"
        (self.project / "src").mkdir(parents=True)
        for name in ("README", "src/main.py", "src/other.py"):
            (self.project / name).write_text(f"this is {name}\n")

    def config(self, *commands: str | dict[str, Any], **more: Any) -> SessionConfig:
        """What a session with a model that gives these commands, and then is done, is made of."""
        replies = [bash(one) if isinstance(one, str) else one for one in commands]
        replies.append({"tool_calls": [{"name": "finish", "arguments": {"message": "done"}}]})
        script = self.folder / f"script-{len(list(self.folder.glob('script-*')))}.jsonl"
        script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        return SessionConfig(agent="CodeActAgent", model=f"scripted:{script}", workspace=str(self.project), **more)

    async def ran(self, *commands: str | dict[str, Any], **more: Any) -> EventLog:
        """Return the log of a session that has carried the commands out."""
        opened = await create(self.store, self.data, self.config(*commands, **more), lambda _: None, "a task")
        try:
            state = await opened.run("do it")
        finally:
            await opened.close()
        assert state.agent_state == "finished", state.change
        return opened.log

    async def output(self, log: EventLog, command: str) -> str:
        """Return what a command prints in the sandbox of a session."""
        opened = await reopen(self.store, self.data, log.id, lambda _: None)
        try:
            sandbox = await opened.sandbox()
            observation = await sandbox.execute(CmdRunAction(command=command, timeout=60))
        finally:
            await opened.close()
        assert isinstance(observation, CmdOutputObservation), observation
        assert observation.exit_code == 0, observation.text
        return observation.text

    async def resumed(self, log: EventLog, message: str | None, *commands: str | dict[str, Any]) -> State:
        """Have a session carry out more commands."""
        # A scripted model begins after as many replies as the conversation has.
        before = sum(isinstance(event, CompletionEvent) for event in await log.read())
        model = self.config(*["true"] * before, *commands).model
        opened = await reopen(self.store, self.data, log.id, lambda _: None, model=model)
        try:
            return await opened.run(message)
        finally:
            await opened.close()


def outputs(events: list[Event]) -> dict[int, str]:
    """What was printed, by the id of the observation."""
    return {event.id: event.text for event in events if isinstance(event, CmdOutputObservation)}
