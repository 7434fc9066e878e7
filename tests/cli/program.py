"""Runs ``handiwork`` as a user does: from a shell, or at a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from handiwork.events.codec import to_dict
from handiwork.log.store import Store

HANDIWORK = Path(sys.executable).with_name("handiwork")
PATIENCE = 60.0
"""Seconds to wait for what must come."""


def bash(command: str, said: str = "", **more: Any) -> dict[str, Any]:
    return {"content": said, "tool_calls": [{"name": "bash", "arguments": {"command": command}}], **more}


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "edit", "arguments": {"path": path, "old": old, "new": new}}]}


def finish(message: str = "Done.") -> dict[str, Any]:
    return {"tool_calls": [{"name": "finish", "arguments": {"message": message}}]}


class Program:
    """One user's installation: ``workspace`` is their project, a file greeting.txt that says hello."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.workspace = folder / "project"
        self.workspace.mkdir()
        (self.workspace / "greeting.txt").write_text("hello\n")
        self.data = folder / "data"
        self.settings = folder / "config/handiwork/config.toml"
        unwanted = ("HANDIWORK_", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "HANDIWORK_DATA": str(self.data),
            "HANDIWORK_CACHE": str(cache),
            "TERM": "xterm-256color",
            # Compiled once for all tests, and not into the checkout.
            "PYTHONPYCACHEPREFIX": str(cache / "pycache"),
        }

    def script(self, *replies: dict[str, Any], name: str = "script") -> str:
        """Return the name of a model that gives these replies, for as long as no other has the ``name``."""
        file = self.folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        return f"scripted:{file}"

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end without a terminal."""
        return subprocess.run(
            [HANDIWORK, *arguments],
            cwd=self.workspace,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def run(self, *replies: dict[str, Any], flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run a task without a sandbox, on a model that gives these replies."""
        return self("run", "greet the world", "--model", self.script(*replies), "--sandbox", "none", *flags)

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the newest session."""
        return asyncio.run(self._events())

    async def _events(self) -> list[dict[str, Any]]:
        async with Store.open(self.data) as store:
            (newest,) = await store.sessions(limit=1)
            return [to_dict(event) for event in await (await store.log(newest.id)).read()]

    def at_terminal(self, *arguments: str, **environment: str) -> Terminal:
        return Terminal([str(HANDIWORK), *arguments], self.workspace, {**self.environment, **environment})


class Terminal:
    """A program at a terminal of 100 columns; ``seen`` is all that it wrote so far."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command],
            cwd=cwd,
            env={**environment, "COLUMNS": "100", "LINES": "40"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def write(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def press_ctrl_c(self) -> None:
        self.write("\x03")

    def until(self, text: str) -> str:
        """Read until the text comes that was not there before; return what was read."""
        start, deadline = len(self.seen), time.monotonic() + PATIENCE
        while text not in self.seen[start:]:
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.seen[start:]!r}"
            if not self._read(deadline):
                raise AssertionError(f"it ended before {text!r} came: {self.seen!r}")
        return self.seen[start:]

    def exit_code(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        readable, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return False
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # the terminal was closed on the other side
            return False
        self.seen += chunk.decode(errors="replace")
        return bool(chunk)
