"""Projects and sessions for tests of the agents that repair code in real sandboxes with a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import AgentDelegateObservation, ErrorObservation
from handiwork.events.record import Limits
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create, reopen
from handiwork.session.session import Session
from handiwork.workspace.changes import Change

HERE = __name__
YESTERDAY = time.time() - 24 * 3600


def unittest_of(imports: str, **assertions: str) -> str:
    """The text of a test file; each assertion is a test."""
    tests = "".join(f"    def test_{name}(self):\n        self.{text}\n\n" for name, text in assertions.items())
    return f"import unittest\n{imports}\n\n\nclass Tests(unittest.TestCase):\n{tests}"


class Delegator(Agent):
    """Hands its task, the JSON of a delegate's name and inputs, to it, and finishes with the outcome."""

    def step(self, state: State) -> Step:
        for _, observation in state.history:
            if isinstance(observation, ErrorObservation):
                return AgentFinishAction(outputs={"message": observation.content})
            if isinstance(observation, AgentDelegateObservation):
                return AgentFinishAction(outputs={"outcome": observation.outcome, **observation.outputs})
        agent, inputs = json.loads(state.task)
        return [CmdRunAction(command="cd /"), AgentDelegateAction(agent=agent, inputs=inputs)]


class Workshop:
    """A project of files, and sessions of an agent on it, RepairAgent by default."""

    def __init__(self, folder: Path, store: Store, stack: AsyncExitStack) -> None:
        self.folder, self.store, self._stack = folder, store, stack
        self.project = folder / "project"
        self.events: list[Event] = []
        self.llm = ScriptedLLM([])
        self.session: Session | None = None

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            (self.project / path).parent.mkdir(parents=True, exist_ok=True)
            (self.project / path).write_bytes(text.encode())
            # As in a project that was not written this very second: Python takes a file of the same second and size
            # for the one that it has compiled.
            os.utime(self.project / path, (YESTERDAY, YESTERDAY))

    async def open(
        self, *replies: str, agent: str = "RepairAgent", in_place: bool = False, limits: Limits | None = None
    ) -> Session:
        self.llm = ScriptedLLM(replies)
        config = SessionConfig(
            agent=agent,
            model="scripted",
            workspace=str(self.project),
            sandbox="bubblewrap",
            in_place=in_place,
            limits=limits or Limits(),
        )
        self.session = await create(self.store, self.folder / "data", config, self.watch, "a repair", llm=self.llm)
        self._stack.push_async_callback(self.session.close)
        return self.session

    async def repair(
        self,
        task: str,
        *replies: str,
        agent: str = "RepairAgent",
        in_place: bool = False,
        limits: Limits | None = None,
    ) -> State:
        return await (await self.open(*replies, agent=agent, in_place=in_place, limits=limits)).run(task)

    async def delegate(
        self, *replies: str, agent: str = "RepairAgent", in_place: bool = False, **inputs: object
    ) -> State:
        session = await self.open(*replies, agent=f"{HERE}:Delegator", in_place=in_place)
        return await session.run(json.dumps([agent, {"task": "Repair it.", **inputs}]))

    async def resume(self, *replies: str) -> State:
        """Resume the session in a new process's way, with a model that has these replies left."""
        assert self.session is not None
        script = self.folder / "script.jsonl"
        script.write_text("\n".join(json.dumps({"content": reply}) for reply in replies))
        self.session = await reopen(
            self.store, self.folder / "data", self.session.id, self.watch, model=f"scripted:{script}"
        )
        try:
            return await self.session.run()
        finally:
            await self.session.close()

    def changed(self) -> dict[str, str]:
        """Return the texts of the sources that the session changed, as it leaves them."""
        assert self.session is not None
        files = self.session.config.files(self.folder / "data/sessions" / self.session.id)
        found: list[Change] = [change for change in files.changes() if "__pycache__" not in change.path]
        return {change.path: change.new.read().decode() if change.new else "" for change in found}

    def watch(self, item: object) -> None:
        if isinstance(item, Event):
            self.events.append(item)

    async def until(self, kind: type[Event], *, child: bool, times: int = 1) -> None:
        """Wait for events of this kind, of the session itself or of its children."""
        async with asyncio.timeout(30):
            while times > sum(isinstance(event, kind) and bool(event.subtask) == child for event in self.events):
                await asyncio.sleep(0.01)
