"""kill -9 of the platform at any moment: nothing acknowledged is lost, nothing is left, and resume goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from handiwork.log.store import Store


def _script(mark: str | None) -> list[dict[str, Any]]:
    """Three commands; with a mark the last one sleeps that long when it is first run."""
    last = "cat one" if mark is None else f"[ -e begun ] || {{ touch begun; sleep {mark}; }}"
    slow = {"content": "slowly\nand\nslowly\n", "delay": 1}
    return [
        {"tool_calls": [{"name": "bash", "arguments": {"command": "echo one > one"}}]},
        {**slow, "tool_calls": [{"name": "bash", "arguments": {"command": "cat one"}}]},
        {"tool_calls": [{"name": "bash", "arguments": {"command": last}}]},
        {"tool_calls": [{"name": "bash", "arguments": {"command": last}}]},
        {"tool_calls": [{"name": "finish", "arguments": {"message": "done"}}]},
    ]


class Platform:
    """`handiwork` on a data folder and workspace of its own."""

    def __init__(self, folder: Path, mark: str | None) -> None:
        self.data, self.workspace = folder / "data", folder / "project"
        self.workspace.mkdir()
        (self.workspace / "file").write_text("as it was\n")
        self.script = folder / "script.jsonl"
        self.script.write_text("\n".join(json.dumps(line) for line in _script(mark)))
        self.env = {**os.environ, "HANDIWORK_DATA": str(self.data), "XDG_CONFIG_HOME": str(folder / "config")}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).with_name("handiwork")), *arguments, "--json"]
        return subprocess.Popen(command, env=self.env, cwd=self.workspace, stdout=subprocess.PIPE, text=True)

    def run(self) -> subprocess.Popen[str]:
        return self.start("run", "write one", "--model", f"scripted:{self.script}")


def _sleeping(mark: str) -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(folder.name)
        except OSError:
            continue
    return found


def _read_until(process: subprocess.Popen[str], kind: str, nth: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    seen: list[dict[str, Any]] = []
    for line in process.stdout:
        seen.append(json.loads(line))
        if sum(event["type"] == kind for event in seen) == nth:
            return seen
    raise AssertionError(f"it ended before {kind} number {nth}: {[event['type'] for event in seen]}")


@pytest.mark.parametrize(
    ("kind", "nth"),
    [
        pytest.param("StepStarted", 2, marks=pytest.mark.slow, id="during a model call"),
        pytest.param("CmdRunAction", 3, marks=pytest.mark.slow, id="during a command"),
        pytest.param("CmdOutputObservation", 1, marks=pytest.mark.slow, id="between"),
    ],
)
async def test_a_killed_session_goes_on(tmp_path: Path, kind: str, nth: int) -> None:
    mark = f"86399.{uuid4().int % 10**12}"
    platform = Platform(tmp_path, mark if kind == "CmdRunAction" else None)
    process = platform.run()
    try:
        acknowledged = await asyncio.to_thread(_read_until, process, kind, nth)
        if kind == "CmdRunAction":
            async with asyncio.timeout(20):
                while not _sleeping(mark):
                    await asyncio.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()

    resumed = platform.start("resume")
    output, _ = await asyncio.to_thread(resumed.communicate)
    assert resumed.returncode == 0
    assert json.loads(output.splitlines()[-1])["type"] == "AgentFinishAction"
    async with Store.open(platform.data) as store:
        (info,) = await store.sessions()
        events = await (await store.log(info.id)).read()
    assert info.state == "finished"
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    assert [(e["id"], e["type"]) for e in acknowledged] == [(e.id, e.kind) for e in events[: len(acknowledged)]]
    assert not _sleeping(mark)
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    assert (platform.workspace / "file").read_text() == "as it was\n"
    assert not (platform.workspace / "one").exists()
