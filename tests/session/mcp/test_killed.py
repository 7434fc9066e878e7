"""kill -9 of the platform while an MCP server works: the session resumes, and the server is started anew."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.session.mcp.bench import SMALL

HANDIWORK = Path(sys.executable).with_name("handiwork")


def tool_call(tool: str, **arguments: Any) -> dict[str, Any]:
    given = {"server": "a", "tool": tool, "arguments": arguments}
    return {"tool_calls": [{"name": "mcp_call", "arguments": given}]}


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_a_killed_session_resumes_with_its_servers(tmp_path: Path, sandbox: str) -> None:
    workspace, config = tmp_path / "project", tmp_path / "config/handiwork/config.toml"
    workspace.mkdir()
    config.parent.mkdir(parents=True)
    options = ["-I", str(SMALL)]
    mounts = [str(SMALL.parent), sys.base_prefix, str(Path(sys.executable).parents[1])]
    table = f"[mcp.a]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(options)}\n"
    config.write_text(f"mount_ro = {json.dumps(mounts)}\n{table}")
    finish = {"tool_calls": [{"name": "finish", "arguments": {"message": "done"}}]}
    script = tmp_path / "script.jsonl"
    replies = [tool_call("sleep", seconds=600), tool_call("echo", text="after"), finish]
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    data = {"HANDIWORK_DATA": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    environment = {**os.environ, **data}

    command = [HANDIWORK, "run", "x", "--model", f"scripted:{script}", "--sandbox", sandbox, "--json"]
    with subprocess.Popen(command, env=environment, cwd=workspace, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        for line in first.stdout:
            if json.loads(line)["type"] == "MCPCallAction":
                break
        time.sleep(0.5)
        first.send_signal(signal.SIGKILL)
    resumed = subprocess.run(
        [HANDIWORK, "resume", "--json"], env=environment, cwd=workspace, capture_output=True, text=True, check=False
    )
    events = [json.loads(line) for line in resumed.stdout.splitlines()]
    assert resumed.returncode == 0, resumed.stderr
    answers = [event for event in events if event["type"] == "MCPCallObservation"]
    assert [answer["content"] for answer in answers] == ["after"]
    assert any(event["type"] == "ErrorObservation" for event in events)
    for _ in range(100):
        if not _processes_of(str(tmp_path)):
            return
        time.sleep(0.05)
    raise AssertionError(f"processes are left: {_processes_of(str(tmp_path))}")


def _processes_of(folder: str) -> list[str]:
    """The programs whose working directory is below the folder."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.readlink(process / "cwd").startswith(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found
