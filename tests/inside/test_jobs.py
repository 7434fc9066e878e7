"""Background commands: started, listed, read and stopped by their handles, asked through the server."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any

import pytest

from tests.inside.inside_client import Client

pytestmark = pytest.mark.slow


async def job(client: Client, operation: str, handle: str = "") -> dict[str, Any]:
    return await client.execute("JobAction", operation=operation, job=handle)


async def _start(client: Client, command: str, lines: int, **fields: Any) -> str:
    """Start job1, and return what it prints once that has so many lines, of which few may come at once."""
    printed = (await client.run(command, background=True, **fields))["content"]
    while printed.count("\n") < lines:
        printed += (await job(client, "read", "job1"))["content"]
    return printed


async def _ended(client: Client, command: str) -> dict[str, Any]:
    """Run a background command to its end; return the last observation with the content of all."""
    last = await client.run(command, background=True)
    printed = last["content"]
    while last["exit_code"] is None:
        last = await job(client, "read", last["job"])
        printed += last["content"]
    return {**last, "content": printed}


async def _begun(client: Client, name: str) -> None:
    """Wait until a command has made its mark; files are the only thing to be seen from outside."""
    while not (client.workspace / name).exists():
        await asyncio.sleep(0.01)


async def _let_go(client: Client, pid: str) -> None:
    """Let a job that reads the pipe "go" read a line, and wait until it has ended."""
    (client.workspace / "go").write_text("\n")
    while os.path.exists(f"/proc/{pid.strip()}"):
        await asyncio.sleep(0.01)


async def test_a_background_command_has_a_handle_and_leaves_the_shell_free(client: Client) -> None:
    started = await client.run("sleep 100", background=True)
    assert (started["status"], started["job"], started["exit_code"]) == ("background", "job1", None)
    assert (await client.run("echo free; jobs"))["content"] == "free\n"
    listed = await job(client, "list")
    assert re.match(r"job1 running, \d+ s: sleep 100\n", listed["content"])


async def test_it_runs_where_the_shell_is_with_what_the_shell_has(client: Client) -> None:
    await client.run("mkdir 'a dir'; cd 'a dir'; export FOO='x y'; f() { echo fn; }; alias hi='echo alias'")
    ended = await _ended(client, 'pwd; echo "$FOO"; f; hi\n(exit 3)')
    assert ended["content"] == f"{client.workspace}/a dir\nx y\nfn\nalias\n"
    assert ended["exit_code"] == 3
    assert (await _ended(client, "env | grep -c __hw"))["content"] == "0\n"


async def test_it_starts_also_while_a_command_runs(client: Client) -> None:
    await client.run("export FOO=1")
    assert (await client.run("export FOO=2; sleep 100"))["status"] == "running"
    assert (await _ended(client, "echo $FOO"))["content"] == "1\n"
    await client.interrupt()
    assert (await client.wait())["status"] == "interrupted"


@pytest.mark.parametrize(
    ("command", "content", "code"),
    [
        ("echo out; exit 127", "out\n", 127),
        ("kill -9 $$", "", 137),
        ("cat; read X; tty; (exit 4)", "not a tty\n", 4),
        ("printf '\\303\\251 \\377'", "\u00e9 \\xff", 0),
    ],
)
async def test_what_ends_at_once_is_told_at_once(client: Client, command: str, content: str, code: int) -> None:
    # On a busy machine it may not end within the moment for which its start waits: then again.
    while (ended := await client.run(command, background=True))["status"] == "background":
        await job(client, "stop", ended["job"])
    assert (ended["status"], ended["exit_code"], ended["content"]) == ("done", code, content)
    assert (await client.run("true"))["content"] == "", "and not again"
    listed = (await job(client, "list"))["content"].splitlines()
    assert any(re.match(rf"{ended['job']} done \(exit code {code}\), \d+ s: ", line) for line in listed)


async def test_reading_goes_on_where_it_ended(client: Client) -> None:
    script = "printf 'a\\303'; read -r < go; printf '\\251b'; touch said; sleep 100"
    await client.run("mkfifo go")
    printed = (await client.run(script, background=True))["content"]
    while not printed:
        printed = (await job(client, "read", "job1"))["content"]
    assert printed == "a", "half a character waits for the other half"
    assert (await job(client, "read", "job1"))["content"] == ""
    await client.run("echo > go")
    await _begun(client, "said")
    read = await job(client, "read", "job1")
    assert (read["content"], read["status"], read["exit_code"]) == ("\u00e9b", "running", None)


async def test_the_end_of_a_job_is_told_once_with_the_next_command(client: Client) -> None:
    await client.run("mkfifo go")
    await _let_go(client, await _start(client, "echo $$; read < go; echo late; exit 3", 1))
    assert (await client.run("true"))["content"] == "[job1 ended with exit code 3: read job1 to see its output]\n"
    assert (await client.run("true"))["content"] == ""
    read = await job(client, "read", "job1")
    assert (read["content"], read["status"], read["exit_code"]) == ("late\n", "done", 3)


@pytest.mark.parametrize(("keep", "field", "before"), [(100, "content", "abc\n"), (1, "tail", "c\n")])
async def test_the_end_is_told_after_the_output_of_a_command(
    client: Client, keep: int, field: str, before: str
) -> None:
    await client.run("mkfifo go")
    await _let_go(client, await _start(client, "echo $$; read < go", 1))
    said = await client.run("printf abc", head=keep, tail=keep)
    assert said[field] == f"{before}[job1 ended with exit code 0: it printed nothing more]\n"


async def test_stopping_ends_all_the_processes_of_a_job(client: Client) -> None:
    script = "echo $$; sleep 1000 & echo $!; (trap '' TERM; sleep 1000 & echo $!; wait; wait) & echo $!; wait"
    pids = (await _start(client, script, 4)).split()
    stopped = await job(client, "stop", "job1")
    assert (stopped["status"], stopped["exit_code"]) == ("stopped", 143)
    assert not any(os.path.exists(f"/proc/{pid}/task") for pid in pids)
    assert (await job(client, "stop", "job1"))["status"] == "stopped", "again is no error"
    assert (await client.run("true"))["content"] == ""


async def test_a_job_may_tidy_up_when_it_is_stopped(client: Client) -> None:
    await _start(client, "trap 'echo tidy; exit 7' TERM; echo ready; while :; do sleep 0.05; done", 1)
    stopped = await job(client, "stop", "job1")
    assert stopped["content"].endswith("tidy\n")
    assert stopped["exit_code"] == 7


async def test_a_timeout_stops_a_job(client: Client) -> None:
    await client.run("sleep 1000", background=True, timeout=0.3)
    while "running" in (listed := (await job(client, "list"))["content"]):
        await asyncio.sleep(0.01)
    assert re.match(r"job1 stopped \(exit code 143\), \d+ s: ", listed)


async def test_of_output_without_end_the_two_ends_are_kept(client: Client) -> None:
    await client.run("mkfifo go")
    script = "echo $$; read < go; echo first; yes | head -c 50M; echo last"
    await _let_go(client, await _start(client, script, 1))
    read = await job(client, "read", "job1")
    assert read["content"].startswith("first\ny\n")
    assert read["tail"].endswith("y\nlast\n")
    whole = (await client.http.get(f"/spool/{read['spool']}")).text
    left_out = 50 * 1024 * 1024 + len("first\nlast\n") - 2 * 1024 * 1024
    assert f"\n[... {left_out} bytes left out: more was printed than is kept ...]\n" in whole
    assert len(whole) == read["size"] < 2 * 1024 * 1024 + 100


async def test_a_handle_that_is_none_is_answered_with_those_there_are(client: Client) -> None:
    assert (await job(client, "list"))["content"] == "There are no background commands.\n"
    unknown = await job(client, "read", "job1")
    assert unknown["content"] == "There is no background command 'job1'. No background command was started."
    for _ in range(2):
        await client.run("true", background=True)
    unknown = await job(client, "stop", "7")
    assert unknown["error_id"] == "no_job"
    assert unknown["content"] == "There is no background command '7'. There are: job1, job2."


async def test_what_cannot_run_in_the_background_is_an_error(client: Client) -> None:
    for command, is_input in ((" ", False), ("x", True)):
        refused = await client.run(command, background=True, is_input=is_input)
        assert refused["error_id"] == "bad_command"


async def test_the_end_of_the_server_ends_its_jobs(client: Client) -> None:
    pids = (await _start(client, "echo $$; sleep 1000 & echo $!; wait", 2)).split()
    client.process.terminate()
    await asyncio.wait_for(client.process.wait(), 20)
    assert not any(os.path.exists(f"/proc/{pid}/task") for pid in pids)
