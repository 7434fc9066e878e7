"""What a persistent shell must do, asked through the server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.inside.inside_client import Client


@pytest.mark.parametrize(
    ("command", "content", "code"),
    [
        ("echo hi", "hi\n", 0),
        ('cat <<EOF\na "b\n\tx $((1+1))\nEOF\necho done', 'a "b\n\tx 2\ndone\n', 0),
        ("for i in 1 2; do\n  echo $i\ndone\n(exit 77)", "1\n2\n", 77),
        ("printf '  no newline'", "  no newline", 0),
        ("printf '\\377\\001A\\rB\\303\\251\\n'", "\\xff\x01A\rB\u00e9\n", 0),
        ("echo 'abc", "bash: unexpected EOF while looking for matching `''\n", 2),
        ("if then; echo", "bash: syntax error near unexpected token `then'\n", 2),
        ("sh -c 'kill -SEGV $$' 2>/dev/null", "Segmentation fault\n", 139),
        ("clear; echo after", None, 0),
        ("echo " + "x" * 10_000 + " | wc -c", "10001\n", 0),
        ("printf 'y%.0s' $(seq 10000)", "y" * 10_000, 0),
        ("echo $TERM $PAGER $GIT_PAGER $EDITOR $GIT_EDITOR", "dumb cat cat true true\n", 0),
    ],
)
async def test_output_and_exit_code_are_exact_and_the_shell_goes_on(
    client: Client, command: str, content: str | None, code: int
) -> None:
    observation = await client.run(command, head=20_000)
    if content is not None:
        assert observation["content"] == content
    assert (observation["exit_code"], observation["status"]) == (code, "done")
    assert (await client.run("echo $?"))["content"] == f"{code}\n"


async def test_directory_variables_functions_and_the_last_exit_code_stay(client: Client) -> None:
    await client.run("mkdir -p 'a dir'; cd 'a dir'; export FOO='a b'; f() { echo fn; }; false")
    observation = await client.run('echo "$? $FOO $(f)"')
    assert observation["content"] == "1 a b fn\n"
    assert observation["cwd"] == str(client.workspace / "a dir")


async def test_a_directory_whose_name_is_not_utf_8(client: Client) -> None:
    observation = await client.run(r"mkdir $'caf\xe9'; cd $'caf\xe9'; echo here")
    assert observation["content"] == "here\n"
    assert observation["cwd"].endswith("/caf?")
    assert (await client.run("echo still"))["content"] == "still\n"


async def test_exit_brings_a_new_shell_in_the_same_place(client: Client) -> None:
    observation = await client.run("mkdir d; cd d; export FOO='x y'; f() { echo fn $FOO; }; set -u; exit 3")
    assert (observation["status"], observation["exit_code"]) == ("exited", 3)
    assert observation["cwd"] == str(client.workspace / "d")
    again = await client.run("f; pwd; case $- in *u*) echo nounset;; esac")
    assert again["content"] == f"fn x y\n{client.workspace}/d\nnounset\n"


@pytest.mark.parametrize(
    ("command", "code", "content"), [("exec echo replaced", 0, "replaced\n"), ("set -e; false", 1, "")]
)
async def test_a_shell_that_ends_otherwise_comes_back_with_its_state(
    client: Client, command: str, code: int, content: str
) -> None:
    await client.run("export KEPT=1")
    observation = await client.run(command)
    assert (observation["status"], observation["exit_code"]) == ("exited", code)
    assert observation["content"] == content
    assert (await client.run("false; echo $KEPT"))["content"] == "1\n"


async def test_a_shell_killed_from_outside_comes_back(client: Client) -> None:
    await client.run("export KEPT=1")
    observation = await client.run("kill -9 $$")
    assert (observation["status"], observation["exit_code"]) == ("exited", 137)
    assert (await client.run("echo $KEPT"))["content"] == "1\n"


async def test_set_x_and_set_v_show_the_commands_only(client: Client) -> None:
    assert (await client.run("set -x"))["content"] == ""
    assert (await client.run("echo a"))["content"] == "++ echo a\na\n"
    assert (await client.run("if then"))["exit_code"] == 2
    assert (await client.run("set +x; set -v"))["content"] == "++ set +x\n"
    assert (await client.run("echo b"))["content"] == "echo b\nb\n"


async def test_a_program_that_reads_gets_its_input(client: Client) -> None:
    asked = await client.run('read -p "name? " N; echo "got $N"')
    assert (asked["status"], asked["content"], asked["exit_code"]) == ("input", "name? ", None)
    answered = await client.type("bob")
    assert (answered["status"], answered["content"], answered["exit_code"]) == ("done", "got bob\n", 0)


async def test_a_program_that_reads_all_of_its_input_takes_c_d(client: Client) -> None:
    assert (await client.run("cat"))["status"] == "input"
    assert (await client.type("abc"))["content"] == "abc\n"
    ended = await client.type("C-d")
    assert (ended["status"], ended["exit_code"]) == ("done", 0)


async def test_a_python_prompt_can_be_talked_to(client: Client) -> None:
    assert (await client.run("python3 -q", timeout=20))["status"] == "input"
    assert "42" in (await client.type("print(6*7)"))["content"]
    assert (await client.type("exit()"))["exit_code"] == 0


KEYS_READ = """python3 -c '
import os, sys, termios, tty
before = termios.tcgetattr(0)
{mode}
print("ready", flush=True)
keys = os.read(0, 9)
while keys[-1:] not in (b"\\r", b"\\n"):
    keys += os.read(0, 9)
termios.tcsetattr(0, termios.TCSANOW, before)
print(keys)'
"""


@pytest.mark.parametrize(("mode", "keys"), [("tty.setraw(0)", r"b'ab\r'"), ("", r"b'ab\n'")], ids=["raw", "lines"])
async def test_the_input_ends_with_the_enter_key(client: Client, mode: str, keys: str) -> None:
    asked = await client.run(KEYS_READ.format(mode=mode), timeout=20)
    assert (asked["status"], asked["content"]) == ("input", "ready\n")
    assert (await client.type("ab"))["content"] == f"{keys}\n"


async def test_input_that_nobody_read_is_no_command(client: Client) -> None:
    assert (await client.run("read X; sleep 0.2"))["status"] == "input"
    assert (await client.type("first\necho SECOND"))["status"] == "done"
    assert (await client.run("echo ok"))["content"] == "ok\n"


async def test_waiting_with_a_timeout_ends_what_waits_for_input_and_takes_no_key_to_end_it(client: Client) -> None:
    assert (await client.run("trap '' INT; read X"))["status"] == "input"
    assert (await client.wait(timeout=0.2))["status"] == "timeout"
    assert (await client.run("echo ok"))["content"] == "ok\n"


async def test_a_line_of_input_that_the_terminal_would_cut_is_refused(client: Client) -> None:
    await client.run("cat")
    assert (await client.type("x" * 5000))["error_id"] == "too_long"
    assert (await client.type("C-c"))["exit_code"] == 130


async def test_a_long_command_goes_on_and_its_output_is_neither_lost_nor_repeated(client: Client) -> None:
    script = "i=0; while ((i < 6)); do printf '\\303'; sleep 0.3; printf '\\251%s\\n' $((i++)); done"
    first = await client.run(script)
    assert (first["status"], first["exit_code"]) == ("running", None)
    busy = await client.run("echo other")
    assert busy["error_id"] == "busy"
    assert "C-c" in busy["content"]
    parts = [first]
    while parts[-1]["status"] == "running":
        parts.append(await client.wait())
    assert "".join(part["content"] for part in parts) == "".join(f"\u00e9{i}\n" for i in range(6))
    assert parts[-1]["exit_code"] == 0


async def test_input_with_nothing_running_is_an_error(client: Client) -> None:
    assert (await client.type("hello"))["error_id"] == "no_program"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("echo before; sleep 100", 130),
        ("echo before; while :; do :; done", 130),
        ("echo before; bash -c \"trap '' INT; sleep 100\"", 143),
        ("echo before; python3 -c 'import signal, time\nfor n in (2, 15): signal.signal(n, 1)\ntime.sleep(99)'", 137),
    ],
)
async def test_a_timeout_stops_the_command_whatever_it_ignores(client: Client, command: str, code: int) -> None:
    observation = await client.run(command, timeout=1.5)  # time for Python to begin to ignore, on a busy machine too
    assert (observation["status"], observation["exit_code"]) == ("timeout", code)
    assert observation["content"].startswith("before\n")
    assert (await client.run("echo alive"))["content"] == "alive\n"


IGNORING = "bash -c \"trap '' INT TERM HUP; while :; do sleep 1; done\""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "sleep 100",
        "bash -c \"trap '' INT; sleep 100\"",
        IGNORING,
        f"{IGNORING} | {IGNORING}",
        f"( ( {IGNORING} & wait ); sleep 100 )",
        "stty -isig; sleep 100",
        "while :; do bash -c \"trap '' INT; sleep 0.05\"; done",
    ],
)
async def test_what_stands_after_a_command_that_is_stopped_does_not_run(client: Client, command: str) -> None:
    observation = await client.run(f"export KEPT=1; {command}; echo never", timeout=0.2)
    assert observation["status"] == "timeout"
    assert "never" not in observation["content"]
    assert (await client.run("echo $KEPT"))["content"] == "1\n"


async def test_a_program_that_is_stopped_has_time_to_clean_up(client: Client) -> None:
    program = "import time\ntry: time.sleep(99)\nfinally:\n time.sleep(0.2)\n print('clean')"
    observation = await client.run(f'python3 -c "{program}"', timeout=0.4)
    assert (observation["status"], observation["exit_code"]) == ("timeout", 130)
    assert observation["content"].startswith("clean\n")


async def test_a_shell_that_ignores_signals_is_replaced(client: Client) -> None:
    observation = await client.run("export KEPT=1; trap '' INT TERM; while :; do :; done", timeout=0.4)
    assert (observation["status"], observation["exit_code"]) == ("timeout", 137)
    assert (await client.run("echo alive"))["content"] == "alive\n"


async def test_a_background_job_returns_at_once_and_does_not_disturb(client: Client) -> None:
    started = await client.run("(read -t 0.1 <> <(:); echo late) & sleep 100 & echo started")
    assert started["status"] == "done"
    assert started["content"].endswith("started\n")
    observation = await client.run("sleep 0.4; (exit 5)")
    assert observation["exit_code"] == 5
    assert (await client.run("echo next"))["content"].endswith("next\n")


@pytest.mark.slow
async def test_a_hundred_megabytes_are_counted_exactly_and_kept_in_bounded_memory(client: Client) -> None:
    observation = await client.run("yes | head -c 100M; exit_code=$?; (exit 9)", timeout=100)
    assert observation["size"] == 100 * 1024 * 1024
    assert observation["exit_code"] == 9
    assert observation["content"] == "y\n" * 4096
    assert observation["tail"].startswith("y\n" * 4000)
    assert "only the first 67108864" in observation["tail"], "what is kept of the whole is bounded too"
    assert sum(map(len, client.deltas)) == 1 << 20
    spool = observation["spool"]
    total = 0
    async with client.http.stream("GET", f"/spool/{spool}") as response:
        async for chunk in response.aiter_bytes():
            assert chunk.strip(b"y\n") == b""
            total += len(chunk)
    assert total == 67108864
    assert (await client.http.delete(f"/spool/{spool}")).status_code == 200
    assert (await client.http.get(f"/spool/{spool}")).status_code == 404
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0])
    assert peak < 80_000, "kilobytes"


async def test_the_two_ends_of_a_long_output_are_cut_between_characters(client: Client) -> None:
    observation = await client.run("printf '\u20ac%.0s' {1..100}", head=10, tail=10)
    assert observation["content"] == observation["tail"] == "\u20ac" * 3
    assert observation["size"] == 300
    whole = await client.http.get(f"/spool/{observation['spool']}")
    assert whole.content.decode() == "\u20ac" * 100


async def test_output_streams_as_it_comes(client: Client) -> None:
    observation = await client.run("printf '\\342\\202'; sleep 0.2; printf '\\254'; sleep 0.2; echo end")
    assert len(client.deltas) >= 2
    assert "".join(client.deltas) == observation["content"] == "\u20acend\n"


async def test_output_cannot_tell_the_end_and_the_environment_has_no_secret(client: Client) -> None:
    assert (await client.run("env | grep -c __hw"))["content"] == "0\n"
    forged = "for p in /proc/$PPID/fd/*; do [ -p $p ] && printf 'ended  0\\0ended x 0\\0\\0' > $p; done; sleep 0.2"
    observation = await client.run(f"{forged}; echo real; (exit 4)")
    assert (observation["content"], observation["exit_code"]) == ("real\n", 4)


@pytest.mark.parametrize(
    "hostile",
    [
        'for i in {3..255}; do eval "exec $i>&-"; done 2>/dev/null',
        "PROMPT_COMMAND=; unset PROMPT_COMMAND; PS1='$ '; PS0=x",
        "exec 0</dev/null",
        "stty raw -opost echo",
        "trap 'echo bye' EXIT; exit 4",
        "exec >/dev/null 2>&1",
        "unset -f __hw_begin __hw_end; set -o noclobber; alias printf=false read=false",
    ],
)
async def test_what_a_command_does_to_its_shell_hangs_nothing(client: Client, hostile: str) -> None:
    observation = await client.run(hostile, timeout=5)
    assert observation["type"] == "CmdOutputObservation"
    await client.run("exit", timeout=1)
    await client.interrupt()
    await client.wait()
    assert "alive" in (await client.run("echo alive"))["content"]


async def test_the_shell_comes_back_if_what_holds_its_descriptors_is_killed(client: Client) -> None:
    await client.run("cd /tmp")
    killed = await client.run("kill -9 $(ps -o pid= --ppid $PPID | grep -vw $$); sleep 20", timeout=10)
    assert killed["status"] == "exited"
    assert (await client.run("pwd"))["content"] == "/tmp\n"


async def test_orphans_are_reaped(client: Client) -> None:
    await client.run("(setsid sh -c 'exit 0' &) ; (setsid sleep 0.1 &)")
    await client.run("sleep 0.5")
    children = Path(f"/proc/{client.process.pid}/task/{client.process.pid}/children").read_text().split()
    assert len(children) == 2, "only the shell, and what holds its descriptors, are left"


async def test_the_end_of_the_server_ends_all_it_started(client: Client) -> None:
    command = "sleep 1000 & setsid sleep 1000 & echo $!; jobs -p"
    pids = [int(word) for word in (await client.run(command))["content"].split() if word.isdigit()]
    assert len(pids) >= 2
    client.process.terminate()
    await asyncio.wait_for(client.process.wait(), 20)
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}/task")
