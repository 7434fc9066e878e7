"""Background commands: started, listed, read and stopped by their handles, asked through the server."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from tests.inside.inside_client import Client


async def job(client: Client, operation: str, handle: str = "") -> dict[str, Any]:
    return await client.execute("JobAction", operation=operation, job=handle)


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
    started = await client.run("echo up; sleep 100", background=True)
    assert (started["status"], started["job"], started["exit_code"]) == ("background", "job1", None)
    assert started["content"] == "up\n"
    assert (await client.run("echo free; jobs"))["content"] == "free\n"
    listed = await job(client, "list")
    assert listed["content"].startswith("job1 running, 0 s: echo up; sleep 100\n")


async def test_it_runs_where_the_shell_is_with_what_the_shell_has(client: Client) -> None:
    await client.run("mkdir 'a dir'; cd 'a dir'; export FOO='x y'; f() { echo fn; }; alias hi='echo alias'")
    started = await client.run('pwd; echo "$FOO"; f; hi\n(exit 3)', background=True)
    assert started["content"] == f"{client.workspace}/a dir\nx y\nfn\nalias\n"
    assert started["exit_code"] == 3
    assert (await client.run("env | grep -c __hw", background=True))["content"] == "0\n"


async def test_it_starts_also_while_a_command_runs(client: Client) -> None:
    await client.run("export FOO=1")
    assert (await client.run("export FOO=2; sleep 100"))["status"] == "running"
    assert (await client.run("echo $FOO", background=True))["content"] == "1\n"
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
    ended = await client.run(command, background=True)
    assert (ended["status"], ended["exit_code"], ended["content"]) == ("done", code, content)
    assert (await client.run("true"))["content"] == "", "and not again"
    assert (await job(client, "list"))["content"].startswith(f"job1 done (exit code {code}), 0 s: ")


async def test_reading_goes_on_where_it_ended(client: Client) -> None:
    script = "printf 'a\\303'; read -r < go; printf '\\251b'; touch said; sleep 100"
    started = await client.run(f"mkfifo go; {script}", background=True)
    assert started["content"] == "a", "half a character waits for the other half"
    assert (await job(client, "read", "job1"))["content"] == ""
    await client.run("echo > go")
    await _begun(client, "said")
    read = await job(client, "read", "job1")
    assert (read["content"], read["status"], read["exit_code"]) == ("\u00e9b", "running", None)


async def test_the_end_of_a_job_is_told_once_with_the_next_command(client: Client) -> None:
    await client.run("mkfifo go")
    pid = (await client.run("echo $$; read < go; echo late; exit 3", background=True))["content"]
    await _let_go(client, pid)
    assert (await client.run("true"))["content"] == "[job1 ended with exit code 3: read job1 to see its output]\n"
    assert (await client.run("true"))["content"] == ""
    read = await job(client, "read", "job1")
    assert (read["content"], read["status"], read["exit_code"]) == ("late\n", "done", 3)


@pytest.mark.parametrize(("keep", "field", "before"), [(100, "content", "abc\n"), (1, "tail", "c\n")])
async def test_the_end_is_told_after_the_output_of_a_command(
    client: Client, keep: int, field: str, before: str
) -> None:
    await client.run("mkfifo go")
    await _let_go(client, (await client.run("echo $$; read < go", background=True))["content"])
    said = await client.run("printf abc", head=keep, tail=keep)
    assert said[field] == f"{before}[job1 ended with exit code 0: it printed nothing more]\n"


async def test_stopping_ends_all_the_processes_of_a_job(client: Client) -> None:
    script = "echo $$; sleep 1000 & echo $!; (trap '' TERM; sleep 1000 & echo $!; wait; wait) & echo $!; wait"
    pids = (await client.run(script, background=True))["content"].split()
    stopped = await job(client, "stop", "job1")
    assert (stopped["status"], stopped["exit_code"]) == ("stopped", 143)
    assert len(pids) == 4
    assert not any(os.path.exists(f"/proc/{pid}/task") for pid in pids)
    assert (await job(client, "stop", "job1"))["status"] == "stopped", "again is no error"
    assert (await client.run("true"))["content"] == ""


async def test_a_job_may_tidy_up_when_it_is_stopped(client: Client) -> None:
    await client.run("trap 'echo tidy; exit 7' TERM; while :; do sleep 0.05; done", background=True)
    stopped = await job(client, "stop", "job1")
    assert stopped["content"].endswith("tidy\n")
    assert stopped["exit_code"] == 7


async def test_a_timeout_stops_a_job(client: Client) -> None:
    pid = (await client.run("echo $$; sleep 1000", background=True, timeout=0.3))["content"].strip()
    while os.path.exists(f"/proc/{pid}"):
        await asyncio.sleep(0.01)
    assert (await job(client, "list"))["content"].startswith("job1 stopped (exit code 143), 0 s: ")


async def test_of_output_without_end_the_two_ends_are_kept(client: Client) -> None:
    await client.run("mkfifo go")
    script = "echo $$; read < go; echo first; yes | head -c 50M; echo last"
    await _let_go(client, (await client.run(script, background=True))["content"])
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
    pids = (await client.run("echo $$; sleep 1000 & echo $!; wait", background=True))["content"].split()
    client.process.terminate()
    await asyncio.wait_for(client.process.wait(), 20)
    assert len(pids) == 2
    assert not any(os.path.exists(f"/proc/{pid}/task") for pid in pids)
