"""The control protocol: turns, interrupts, disconnects, files over HTTP."""

from __future__ import annotations

import ast
import asyncio
import sys
from pathlib import Path

from handiwork.events.answers import SANDBOX_ERRORS
from handiwork.sandbox import inside
from tests.inside.inside_client import PACKAGES, Client, start_server, stop_server


async def _begun(client: Client, name: str) -> None:
    """Wait until a command has made its mark; files are the only thing to be seen from outside."""
    while not (client.workspace / name).exists():
        await asyncio.sleep(0.01)


async def test_health(client: Client) -> None:
    health = (await client.http.get("/health")).json()
    assert health["ok"] is True
    assert health["pid"] == client.process.pid
    assert health["uptime"] > 0


async def test_an_interrupt_ends_the_running_action(client: Client) -> None:
    assert await client.interrupt() is False
    running = asyncio.create_task(client.run("touch m; sleep 100", timeout=90))
    await _begun(client, "m")
    assert await client.interrupt() is True
    observation = await running
    assert observation["status"] == "interrupted"
    assert observation["exit_code"] in (130, 143)  # on a busy machine it is asked more firmly


async def test_a_second_action_waits_for_its_turn(client: Client) -> None:
    first = asyncio.create_task(client.run("touch m; sleep 0.3; echo first >> order", timeout=9))
    await _begun(client, "m")
    async with client.http.stream(
        "POST", "/execute", json={"action": {"type": "CmdRunAction", "command": "cat order"}}
    ) as response:
        assert b"first" in await response.aread()
    assert (await first)["status"] == "done"


async def test_a_client_that_goes_away_stops_its_action(client: Client) -> None:
    gone = asyncio.create_task(client.run("touch m; sleep 100; touch never", timeout=90))
    await _begun(client, "m")
    gone.cancel()
    assert (await client.run("echo next"))["content"].endswith("next\n")
    assert not (client.workspace / "never").exists()


async def test_a_waiting_client_that_goes_away_is_forgotten(client: Client) -> None:
    first = asyncio.create_task(client.run("touch m; sleep 0.5; echo first", timeout=9))
    await _begun(client, "m")
    second = asyncio.create_task(client.run("touch never"))
    await asyncio.sleep(0.1)  # nothing tells that a request waits
    second.cancel()
    assert (await first)["content"] == "first\n"
    await client.run("true")
    assert not (client.workspace / "never").exists()


async def test_files_go_up_and_down(client: Client) -> None:
    data = bytes(range(256)) * 10_000
    put = await client.http.put("/files", params={"path": "new/dir/f"}, content=data)
    assert put.status_code == 200
    assert (await client.http.get("/files", params={"path": "new/dir/f"})).content == data
    for path, error_id in {"nothing": "not_found", "new": "is_directory"}.items():
        answer = await client.http.get("/files", params={"path": path})
        assert (answer.status_code, answer.json()["error_id"]) == (404, error_id)


async def test_requests_that_do_not_fit_the_protocol_are_refused(client: Client) -> None:
    for body in (b"{", b"[]", b'{"action": {"type": "CmdRunAction", "command": 5}}'):
        answer = await client.http.post("/execute", content=body)
        assert (answer.status_code, answer.json()["error_id"]) == (400, "bad_request")
    assert (await client.http.get("/nothing")).status_code == 400


async def test_the_shell_has_the_environment_of_the_server_but_for_its_own(tmp_path: Path) -> None:
    client = await start_server(tmp_path, HANDIWORK_INSIDE_X="1", GIVEN="2")
    observation = await client.run('echo "$HANDIWORK_INSIDE_X|$GIVEN|$PYTHONPATH"; ls /proc/self/fd | wc -l')
    assert observation["content"] == "|2|\n4\n", "three standard descriptors and the one ls reads"
    await stop_server(client)


async def test_the_users_settings_are_read_but_cannot_keep_the_shell_from_starting(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("export FROM_RC=1; echo noise")
    client = await start_server(tmp_path)
    assert (await client.run("echo $FROM_RC"))["content"] == "1\n"
    await stop_server(client)
    (tmp_path / "s").unlink()
    (tmp_path / ".bashrc").write_text("exit 1")
    client = await start_server(tmp_path)
    assert (await client.run("echo alive"))["content"] == "alive\n"
    await stop_server(client)


async def test_a_socket_is_made_private_where_a_path_is_given(tmp_path: Path) -> None:
    path = tmp_path / "s"
    arguments = ("-m", "inside", "--unix", str(path), "--workspace", str(tmp_path))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PACKAGES), "TMPDIR": str(tmp_path)}
    )
    while not path.exists():
        await asyncio.sleep(0.01)  # there is no event for a socket that comes into being
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.is_socket()
    process.terminate()
    await process.wait()


async def test_it_does_not_begin_where_who_started_it_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    arguments = ("-m", "inside", "--unix", str(path), "--workspace", str(tmp_path), "--parent", "1")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PACKAGES), "TMPDIR": str(tmp_path)}
    )
    assert await asyncio.wait_for(process.wait(), 20) == 0
    assert not path.exists()


def test_every_error_that_an_action_names_is_one_that_the_platform_accepts() -> None:
    named = {
        call.args[0].value
        for path in Path(*inside.__path__).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).endswith("ActionError")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(named) > 10
    assert named <= SANDBOX_ERRORS
