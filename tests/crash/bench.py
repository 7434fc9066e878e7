"""Where the trials of a campaign happen: a data folder, a project and temporary files that are always at one place."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import typer

from handiwork.agents.state import State
from handiwork.cli.main import app
from handiwork.events.base import Event
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store
from handiwork.session.time_travel.history import files

T = TypeVar("T")

_PROGRAM = typer.main.get_command(app)


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "bash", "arguments": {"command": command}}], **more}


FINISH: dict[str, Any] = {"tool_calls": [{"name": "finish", "arguments": {"message": "done"}}]}


class Bench:
    """The folder ``here`` of the trial that runs, and the templates that trials begin from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.here = folder / "trial"
        self.data, self.project, self.temporary = (self.here / name for name in ("data", "project", "tmp"))
        self.runtime = folder / "run"  # its path must be short
        self.runtime.mkdir(mode=0o700)
        self.templates = folder / "templates"
        self.templates.mkdir()

    def environment(self) -> None:
        """Have this process, and all that it forks, work in this folder."""
        for name in [name for name in os.environ if name.startswith("HANDIWORK_")]:
            del os.environ[name]
        os.environ |= {
            "HOME": str(self.here),
            "HANDIWORK_DATA": str(self.data),
            "HANDIWORK_CACHE": str(self.folder / "cache"),
            "XDG_CONFIG_HOME": str(self.here / "config"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TMPDIR": str(self.temporary),
        }

    def empty(self) -> None:
        """Begin with nothing but a project of three files."""
        self.clear()
        self.project.mkdir(parents=True)
        self.temporary.mkdir()
        for name in ("README", "first.txt", "second.txt"):
            (self.project / name).write_text("".join(f"{name} {line}\n" for line in range(20)))

    def keep(self, name: str) -> None:
        """Keep what there is as the template ``name``."""
        # What a sandbox wrote may forbid that it is copied.
        subprocess.run(["chmod", "-R", "u+rwX", self.here], check=True)
        self.here.rename(self.templates / name)

    def clear(self) -> None:
        """Remove what a trial has left."""
        if self.here.exists():
            subprocess.run(["chmod", "-R", "u+rwX", self.here], check=True)
            for found in self.here.iterdir():
                shutil.rmtree(found) if found.is_dir() else found.unlink()

    def forget(self) -> None:
        """Remove the records of sandboxes that a trial which failed has left."""
        for place in self.runtime.glob("hw/*"):
            place.unlink()

    def load(self, name: str) -> None:
        """Begin with the template ``name``."""
        self.clear()
        self.here.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", f"{self.templates / name}/.", self.here], check=True)

    def script(self, *replies: dict[str, Any]) -> str:
        """Return the name of a model that gives these replies."""
        file = self.here / "script.jsonl"
        file.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        return f"scripted:{file}"


def handiwork(*arguments: str) -> int:
    """Run the program in this process and return its exit code."""
    try:
        _PROGRAM(list(arguments), prog_name="handiwork")
    except SystemExit as error:
        sys.stdout.flush()
        return error.code if isinstance(error.code, int) else 1
    return 0


def say(**fields: Any) -> None:
    """Tell the process that forked this one what was acknowledged."""
    os.write(1, f"{json.dumps(fields)}\n".encode())


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


async def sessions(data: Path) -> list[SessionInfo]:
    """Return all sessions, newest first."""
    async with Store.open(data) as store:
        return await store.sessions(limit=1000)


async def events_of(data: Path, session: str) -> list[Event]:
    async with Store.open(data) as store:
        return await (await store.log(session)).read()


def folded(events: list[Event]) -> State:
    state = State()
    for event in events:
        state.apply(event)
    return state


def run_task(bench: Bench, *flags: str) -> int:
    model = ("--model", f"scripted:{bench.here}/script.jsonl")
    return handiwork("run", "the task", "--workspace", str(bench.project), *model, *flags)


def newest(bench: Bench) -> str:
    return wait(sessions(bench.data))[0].id


def lines_of(bench: Bench, session: str, name: str) -> list[str]:
    """Return the lines of a file as the session has it now."""

    async def read() -> bytes:
        async with Store.open(bench.data) as store:
            found = await files(bench.data, await store.log(session))
            try:
                with found.open(name) as file:
                    return file.read()
            except FileNotFoundError:
                return b""

    return wait(read()).decode().split()
