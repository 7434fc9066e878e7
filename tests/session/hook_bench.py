"""Sessions in bubblewrap sandboxes, with a scripted model and the hooks of a settings file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handiwork.agents.state import State
from handiwork.events.base import Event
from handiwork.events.record import HookEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from handiwork.session.session import Session
from handiwork.settings import load_hooks


@asynccontextmanager
async def hook_bench(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HookBench]:
    """Yield a bench in the folder, which is the user's home too."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("HOME", str(folder))
    async with Store.open(folder / "data") as store:
        yield HookBench(folder, store)


class HookBench:
    """One user: a settings file, a data folder, and a project with the file ``readme``."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store, self.data = folder, store, folder / "data"
        self.settings = folder / "config/handiwork/config.toml"
        self.settings.parent.mkdir(parents=True)
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "readme").write_text("hello\n")
        self.llm = ScriptedLLM([])
        self.events: list[Event] = []

    def set(self, *hooks: dict[str, Any]) -> None:
        """Write the settings file with these hooks; a JSON value is a TOML value too."""
        tables = ["\n".join(f"{key} = {json.dumps(value)}" for key, value in hook.items()) for hook in hooks]
        self.settings.write_text("".join(f"[[hooks]]\n{table}\n" for table in tables))

    def watch(self, item: object) -> None:
        """Keep the events of all sessions."""
        if isinstance(item, Event):
            self.events.append(item)

    @asynccontextmanager
    async def session(
        self, *replies: Reply | str, capabilities: Capabilities = Capabilities(), **fields: Any
    ) -> AsyncIterator[Session]:
        """Yield a session with the hooks of the file."""
        usual = {"agent": "CodeActAgent", "model": "scripted", "workspace": str(self.project), "hooks": load_hooks()}
        config = SessionConfig.model_validate({**usual, **fields})
        self.llm = ScriptedLLM(replies, capabilities=capabilities)
        session = await create(self.store, self.data, config, self.watch, "a test", llm=self.llm)
        try:
            yield session
        finally:
            await session.close()

    async def run(self, *replies: Reply | str, **fields: Any) -> State:
        """Run a session to its end."""
        async with self.session(*replies, **fields) as session:
            return await session.run("do it")

    @property
    def hooks(self) -> list[HookEvent]:
        """The runs of hooks so far."""
        return [event for event in self.events if isinstance(event, HookEvent)]

    def seen(self) -> str:
        """Return the text of the last conversation that the model got."""
        parts = [part for message in self.llm.requests[-1] for part in message.content]
        return "\n".join(part.text or "" for part in parts)
