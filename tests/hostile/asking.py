"""Sessions whose agent tries to send what it may not, or to find a secret that it did not name."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handiwork.events.observation import AgentStateChangedObservation, CmdOutputObservation
from handiwork.events.record import Confirmation, NetworkAllowed
from handiwork.llm.scripted.script import Reply
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from handiwork.session.session import Session
from handiwork.session.user_events import actions_to_approve, approval

HOST = "example.org"


def repository(folder: Path) -> Path:
    """Make a git repository with one commit, of which git has to look at every file again."""
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m one"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    (folder / "a.txt").write_text("two\n")
    return folder


def embedded_repository(folder: Path, program: str) -> Path:
    """Make a folder without .git that is a repository itself, in whose config ``program`` is all that git may run."""
    repository(folder)
    for path in (folder / ".git").iterdir():
        path.rename(folder / path.name)
    (folder / ".git").rmdir()
    (folder / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    run = ("core.fsmonitor", "filter.x.clean", "diff.x.textconv")
    for name, value in {"core.worktree": ".", **dict.fromkeys(run, program)}.items():
        subprocess.run(["git", "config", "--file", folder / "config", name, value], check=True)
    return folder


class Asking:
    """A session in the sandbox."""

    def __init__(self, opened: Session, store: Store) -> None:
        self.opened, self.store = opened, store

    async def allow_host(self) -> None:
        await self.opened.log.append(NetworkAllowed(hosts=(HOST,), source="user"))

    async def run(self, message: str | None = "go") -> str:
        """Run until the session asks; return about what, "" if it ended."""
        state = await self.opened.run(message)
        (text, *_) = [
            *(getattr(one, "command", "") or getattr(one, "path", "") for one in actions_to_approve(state)),
            "",
        ]
        return text

    async def answer_yes(self) -> str:
        """Allow what is asked about, and run on."""
        for action in actions_to_approve(self.opened.state):
            await self.opened.log.append(approval(action, allowed=True))
        return await self.run(None)

    async def why(self) -> str:
        """Return the reason of the last question."""
        events = await self.opened.log.read()
        return [event.content for event in events if isinstance(event, AgentStateChangedObservation)][-1]

    async def outputs(self) -> list[str]:
        """Return what the commands printed."""
        events = await self.opened.log.read()
        return [event.text for event in events if isinstance(event, CmdOutputObservation)]

    async def exists(self, name: str) -> bool:
        """Whether the workspace has the file, as the sandbox sees it."""
        sandbox = await self.opened.sandbox()
        try:
            async for _ in sandbox.download(name):
                pass
        except FileNotFoundError:
            return False
        return True


@asynccontextmanager
async def asking(
    folder: Path,
    workspace: Path,
    *replies: Reply,
    online: bool = False,
    confirmation: Confirmation = "risky",
    **changes: Any,
) -> AsyncGenerator[Asking]:
    """Open a session whose model gives the replies; ``online``: a host is allowed from the beginning."""
    script = folder / "script.jsonl"
    script.write_text("".join(reply.model_dump_json() + "\n" for reply in replies))
    config = SessionConfig(
        agent="CodeActAgent",
        model=f"scripted:{script}",
        workspace=str(workspace),
        confirmation=confirmation,
        allow_net=(HOST,) if online else (),
        **changes,
    )
    async with Store.open(folder / "data") as store:
        opened = await create(store, folder / "data", config, lambda _: None, "a test")
        async with opened.hold_lease():
            yield Asking(opened, store)
