"""The reference servers of npm and PyPI, driven for real inside bubblewrap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handiwork.events.observation import ErrorObservation, MCPCallObservation, MCPToolsObservation
from tests.session.bench import bash, call, calls, finish
from tests.session.mcp.bench import Sessions, mcp_call

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the servers, which the project's own script installs."""
    script = CHECKOUT / "scripts/mcp_servers.sh"
    installed = subprocess.run([script], cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    return Path(installed.stdout.strip())


def npm(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    script = folder / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return {"command": str((folder / "node").resolve()), "args": [str(script), *arguments]}


def pypi(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    return {"command": str(folder / f"python/bin/mcp-server-{name}"), "args": list(arguments)}


def settings(folder: Path) -> dict[str, Any]:
    """Settings with which the sandbox sees the servers and their interpreters."""
    node = (folder / "node").resolve()
    roots = [folder, Path(sys.base_prefix), *([] if node.is_relative_to("/usr") else [node.parent])]
    return {"sandbox": "bubblewrap", "mount_ro": tuple(map(str, roots))}


async def test_filesystem_works_on_the_copy_alone(sessions: Sessions, folder: Path) -> None:
    (sessions.workspace / "notes.txt").write_text("buy milk\n")
    here = str(sessions.workspace)
    replies = [
        call("mcp_tools", server="filesystem", tools=["write_file"]),
        mcp_call("filesystem", "read_text_file", path=f"{here}/notes.txt"),
        mcp_call("filesystem", "write_file", path=f"{here}/new.txt", content="new\n"),
        mcp_call("filesystem", "read_text_file", path="/etc/passwd"),
        bash("cat new.txt"),
        finish(),
    ]
    await sessions.run({"filesystem": npm(folder, "filesystem", here)}, replies, **settings(folder))
    assert '"content"' in sessions.all(MCPToolsObservation)[0].content
    read, written, refused = sessions.all(MCPCallObservation)
    assert read.content == "buy milk\n"
    assert "Successfully wrote" in written.content
    assert refused.error
    assert "outside allowed directories" in refused.content
    assert not (sessions.workspace / "new.txt").exists()


async def test_everything_answers_with_text_pictures_and_resources(sessions: Sessions, folder: Path) -> None:
    replies = [
        calls(
            ("mcp_call", {"server": "everything", "tool": "echo", "arguments": {"message": "hello"}}),
            ("mcp_call", {"server": "everything", "tool": "get-sum", "arguments": {"a": 2, "b": 3}}),
            ("mcp_call", {"server": "everything", "tool": "get-tiny-image", "arguments": {}}),
        ),
        mcp_call("everything", "get-sum", a="two", b=3),
        finish(),
    ]
    await sessions.run({"everything": npm(folder, "everything", "stdio")}, replies, **settings(folder))
    echo, total, image, wrong = sessions.all(MCPCallObservation)
    assert "hello" in echo.content
    assert "5" in total.content
    assert [part.media_type for part in image.images] == ["image/png"]
    assert wrong.error
    assert sessions.all(ErrorObservation) == []


async def test_time_and_fetch_on_the_loopback_of_the_sandbox(sessions: Sessions, folder: Path) -> None:
    (sessions.workspace / "page.html").write_text("<html><body><h1>Title</h1><p>Words of a page.</p></body></html>")
    serve = "python3 -m http.server 8123 --bind 127.0.0.1"
    page = "http://127.0.0.1:8123/page.html"
    replies = [
        call("bash", command=serve, background=True),
        bash("until curl -s http://127.0.0.1:8123/ >/dev/null; do sleep 0.1; done", content="wait"),
        call("mcp_tools", server="time"),
        calls(
            ("mcp_call", {"server": "time", "tool": "get_current_time", "arguments": {"timezone": "Asia/Tokyo"}}),
            # Raw, because the package that makes Markdown of a page first runs `npm install` where there is node.
            ("mcp_call", {"server": "fetch", "tool": "fetch", "arguments": {"url": page, "raw": True}}),
            ("mcp_call", {"server": "fetch", "tool": "fetch", "arguments": {"url": "http://example.org/"}}),
        ),
        finish(),
    ]
    fetch = pypi(folder, "fetch", "--allow-private-ips")
    servers = {"time": pypi(folder, "time", "--local-timezone", "UTC"), "fetch": fetch}
    await sessions.run(servers, replies, **settings(folder))
    now, fetched, outside = sessions.all(MCPCallObservation)
    assert "+09:00" in now.content
    assert "Words of a page." in fetched.content
    assert outside.error
    assert "failed" not in {event.state for event in sessions.changes()}


async def test_all_four_start_together(sessions: Sessions, folder: Path) -> None:
    servers = {
        "filesystem": npm(folder, "filesystem", str(sessions.workspace)),
        "everything": npm(folder, "everything", "stdio"),
        "time": pypi(folder, "time"),
        "fetch": pypi(folder, "fetch"),
    }
    session = await sessions.open(servers, [], **settings(folder))
    async with session.hold_lease():
        events = await session.start_mcp()
    assert {event.server: event.state for event in events} == dict.fromkeys(servers, "ready")
    assert all(tool.summary and tool.arguments != "{}" for event in events for tool in event.tools)
