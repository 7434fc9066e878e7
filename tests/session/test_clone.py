"""Cloning a repository: git runs in a sandbox that reaches one host, and what comes out runs nothing."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handiwork.session.clone import WORK, CloneError, clone


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a repository with a file, a program and a link that leads outside."""
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q", "-b", "main")
    (source / "file.txt").write_text("hello\n")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("/etc/passwd")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "first")
    served = tmp_path / "served/greeter.git"
    git(tmp_path, "clone", "-q", "--bare", str(source), str(served))
    git(served, "update-server-info")
    server = ThreadingHTTPServer(("127.0.0.2", 0), partial(Quiet, directory=str(tmp_path / "served")))
    threading.Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.2:{server.server_port}/greeter.git"
    server.shutdown()
    server.server_close()


async def test_a_clone_has_the_files_the_history_and_no_hooks(address: str, tmp_path: Path) -> None:
    parent = tmp_path / "clones"
    folder = await clone(address, parent)
    assert folder == parent / "greeter"
    assert (folder / "file.txt").read_text() == "hello\n"
    assert (folder / "run.sh").stat().st_mode & 0o100
    assert (folder / "link").is_symlink()
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--format=%s") == "first\n"
    assert git(folder, "remote", "get-url", "origin").strip() == address
    assert not (folder / ".git/hooks").exists()
    assert (await clone(address, parent)).name == "greeter-2"
    assert sorted(path.name for path in parent.iterdir()) == [WORK, "greeter", "greeter-2"]
    assert not [path for path in (parent / WORK).iterdir() if path.is_dir()], "nothing else is left"


@pytest.mark.parametrize(
    "url", ["/etc", "ssh://host/a.git", "file:///etc", "https://", "http://h/'$(touch x)'", "https://me:secret@host/a"]
)
async def test_what_is_no_address_of_a_repository_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(CloneError) as refused:
        await clone(url, tmp_path)
    assert "secret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


async def test_a_repository_that_wants_a_password_is_told_at_once(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handler: Quiet) -> None:
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", 'Basic realm="a"')
        handler.end_headers()

    monkeypatch.setattr(Quiet, "do_GET", refuse)
    async with asyncio.timeout(60):
        with pytest.raises(CloneError, match=r"could not read Username .* terminal prompts disabled"):
            await clone(address, tmp_path / "clones")


async def test_what_git_says_is_the_reason(address: str, tmp_path: Path) -> None:
    with pytest.raises(CloneError, match="not found"):
        await clone(address.replace("greeter", "nowhere"), tmp_path / "clones")
    assert [path.name for path in (tmp_path / "clones").iterdir()] == [WORK]
