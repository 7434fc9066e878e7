"""Another user of the same machine, or another program on its loopback, attacks the user's sessions."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx2
import pytest

from scripts.harness.serving import PATIENCE, Api, Program, until
from tests.cli.program import HANDIWORK
from tests.hostile.same_machine import OTHER, as_user, open_to_others, run_once


@pytest.mark.needs_root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="another user's files are made by root")
def test_another_user_who_takes_the_folder_of_the_sockets_blocks_no_run() -> None:
    usual = Path(f"/tmp/hw-{OTHER}")
    usual.mkdir(mode=0o777)
    cache = Path(tempfile.mkdtemp())
    os.chown(cache, OTHER, OTHER)
    try:
        first, second = (as_user(OTHER, cache, "runtime_dir()") for _ in range(2))
        entries = [*usual.iterdir()]
        found = Path(first).lstat()
    finally:
        usual.rmdir()
        shutil.rmtree(cache)
    Path(first).rmdir()
    assert first == second
    assert first != str(usual)
    assert entries == []
    assert stat.S_ISDIR(found.st_mode)
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (OTHER, 0o700)
    assert len(f"{first}/12345678.proxy") <= 107


@pytest.mark.slow
def test_others_can_read_no_file_that_a_session_keeps(tmp_path: Path) -> None:
    data = run_once(tmp_path)
    assert open_to_others(data) == []


@pytest.mark.slow
def test_a_data_folder_that_others_could_read_becomes_private_when_it_is_opened(tmp_path: Path) -> None:
    data = run_once(tmp_path)
    for path in (data, *data.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    run_once(tmp_path)
    assert open_to_others(data) == []


HOST = b"Host: 127.0.0.1\r\n"
HALF_OPEN = {
    "nothing": b"",
    "half a head": b"GET /health HTTP/1.1\r\n" + HOST,
    "a body that does not come": b"POST /api/blobs HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\nx",
    "an answer that is not read": b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    "a WebSocket without the token": (
        b"GET /api/follow HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


def connection_to(server: Program) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


@pytest.mark.slow
def test_half_open_connections_keep_nobody_out(server: Program) -> None:
    api = server.start()
    assert server.process is not None
    # As many files as a process may have where nobody raised the limit; the attacker has more connections.
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    for beginning in HALF_OPEN.values():
        with ExitStack() as held:
            for _ in range(320):
                held.enter_context(connection_to(server)).sendall(beginning)
            assert httpx2.get(f"{api.url}/health", timeout=10).status_code == 200
            assert api.get("/api/sessions")["sessions"] == []


def drips(connection: socket.socket) -> bool:
    """Send another byte; return whether the connection is still there."""
    time.sleep(0.2)
    try:
        connection.sendall(b"x")
    except ConnectionError:
        return False
    return True


@pytest.mark.slow
def test_a_request_that_drips_is_ended(server: Program) -> None:
    api = server.start()
    bearer = f"Authorization: Bearer {api.token}\r\n".encode()
    upload = b"POST /api/blobs HTTP/1.1\r\n" + HOST + bearer + b"Content-Length: 100000\r\n\r\n"
    with ExitStack() as held:
        dripping = [held.enter_context(connection_to(server)) for _ in range(2)]
        for connection, beginning in zip(dripping, (HALF_OPEN["half a head"] + b"X: ", upload), strict=True):
            connection.sendall(beginning)
        for connection in dripping:
            until(lambda connection=connection: not drips(connection), "the end of the connection")


def link_in(page: str) -> str:
    """Return where a page leads on to."""
    found = re.search(r'url=([^"]+)"', page)
    assert found is not None
    return found[1]


def command_lines() -> list[str]:
    """The command lines of all processes, as any user may read them."""
    lines: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it ended meanwhile
    return lines


@pytest.mark.slow
def test_the_token_stands_on_no_command_line_while_the_page_opens(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "bin").mkdir()
    told = tmp_path / "told"
    browser = tmp_path / "bin/xdg-open"
    browser.write_text(f'#!/bin/sh\nprintf %s "$*" > {told}.new && mv {told}.new {told}\nsleep 5\n')
    browser.chmod(0o755)
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"tool_calls": [{"name": "finish", "arguments": {"message": "Done."}}]}) + "\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HANDIWORK_")}
    own = {"HANDIWORK_DATA": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "DISPLAY": ":99"}
    run = subprocess.Popen(
        [HANDIWORK, "run", "finish", "--model", f"scripted:{script}", "--web"],
        cwd=tmp_path / "project",
        env={**kept, **own, "PATH": f"{tmp_path / 'bin'}:{kept['PATH']}"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        until(told.exists, "the browser")
        lines = command_lines()
        token = (tmp_path / "data/token").read_text().strip()
        page = Path(unquote(urlsplit(told.read_text()).path))
        assert any(str(browser) in line for line in lines)
        assert not any(token in line for line in lines)
        assert token in link_in(page.read_text())
        assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        # A browser says of a file's link that it leads to another site, and keeps the cookie from redirects' targets.
        with httpx2.Client() as client:
            link = urlsplit(link_in(page.read_text()))
            opened = client.get(link.geturl(), headers={"sec-fetch-site": "cross-site"})
            assert (opened.status_code, link_in(opened.text)) == (200, link.path)
            assert client.get(f"{link.scheme}://{link.netloc}{link.path}").status_code == 200
        assert run.stderr is not None
        while "Ctrl-C" not in run.stderr.readline():
            pass
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) == 0
        assert not page.parent.exists()
    finally:
        run.kill()
        run.communicate()


@pytest.mark.slow
def test_two_servers_do_not_share_a_login(server: Program, tmp_path: Path) -> None:
    other = Program(tmp_path)
    try:
        first, second = server.start(), other.start()
        # Of one data folder, so their token is the same.
        assert first.token == second.token
        with httpx2.Client() as browser:
            assert browser.get(server.link).status_code == 303
            assert [status(browser, api) for api in (first, second)] == [200, 401]
            cookie = next(iter(browser.cookies.jar))
            assert cookie.name.endswith(f"-{server.port}")
            assert first.token not in str(cookie.value)
            assert browser.get(other.link).status_code == 303
            assert [status(browser, api) for api in (first, second)] == [200, 200]
    finally:
        other.close()


def status(browser: httpx2.Client, api: Api) -> int:
    return browser.get(f"{api.url}/api/sessions").status_code
