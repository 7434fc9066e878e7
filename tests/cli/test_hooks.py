"""Hooks on the command line: listed, tried out, shown as they run, and known to a session whose process was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from handiwork.cli.commands.hooks import hooks
from handiwork.errors import Exit
from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish

HOOKS = """
[[hooks]]
event = "before_action"
name = "no push"
matcher = "bash(*git push*)"
command = "echo 'ask me first'; exit 1"

[[hooks]]
event = "after_action"
matcher = "write|MyOwnTool(*.py)"
command = "python3 -c 'import json; print(json.load(open(0))[\\"action\\"][\\"path\\"])'"

[[hooks]]
event = "before_finish"
name = "greeting"
command = "grep -q world greeting.txt || { printf '\\\\033[31mno world\\\\n'; exit 1; }"

[[hooks]]
event = "session_end"
where = "host"
command = "cat > told.json"
"""


def set_hooks(program: Program, text: str) -> None:
    program.settings.parent.mkdir(parents=True, exist_ok=True)
    program.settings.write_text(text)


async def test_they_are_listed_with_what_they_match_and_a_name_that_nothing_has_is_told(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_hooks(program, HOOKS)
    monkeypatch.setenv("XDG_CONFIG_HOME", program.environment["XDG_CONFIG_HOME"])
    assert await hooks(None, as_json=False) == Exit.FINISHED
    listed = capsys.readouterr().out
    assert "no push  before bash (CmdRunAction), if its command, path, code or address is like *git push*" in listed
    assert "before the session's agent finishes; may send it back 3 times in a row" in listed
    assert "runs on your machine, as you, for at most 60 s" in listed
    assert "no tool of CodeActAgent, is called MyOwnTool" in listed
    await hooks(None, as_json=True)
    points = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert points == ["before_action", "after_action", "before_finish", "session_end"]
    program.settings.write_text("")
    await hooks(None, as_json=False)
    assert "no hooks: " in capsys.readouterr().err


@pytest.mark.slow
def test_they_can_be_tried_with_a_sample_and_nothing_is_left_of_that(program: Program) -> None:
    set_hooks(program, HOOKS)
    tried = program("hooks", "--try", "after_action")
    assert tried.returncode == 0, tried.stderr
    assert "exit code 0" in tried.stdout
    assert "hello.txt" in tried.stdout
    tried = program("hooks", "--try", "before_finish", "--json")
    event = json.loads(tried.stdout)
    assert (tried.returncode, event["exit_code"], event["output"]) == (1, 1, "\x1b[31mno world")
    assert program("hooks", "--try", "session_end").returncode == 0
    told = json.loads((program.folder / "told.json").read_text())
    assert (told["workspace"], told["state"], told["error"]) == (str(program.workspace), "finished", "")
    assert not list((program.data / "sessions").glob("*"))
    none = program("hooks", "--try", "session_start")
    assert (none.returncode, none.stdout) == (2, "")
    assert "has no session_start hook to try" in none.stderr


@pytest.mark.slow
def test_a_run_shows_them_and_their_output_reaches_no_terminal_raw(program: Program) -> None:
    set_hooks(program, HOOKS)
    run = program.run(bash("git push"), finish(), bash("echo world >> greeting.txt"), finish())
    assert run.returncode == 0, run.stdout
    assert "hook no push (before_action): exit code 1, " in run.stdout
    assert "; the action is refused\n    ask me first" in run.stdout
    assert "hook greeting (before_finish): exit code 1, " in run.stdout
    assert "; the agent must go on\n    " in run.stdout
    assert "to the agent: The user's hook 'greeting' does not let you finish yet (exit code 1)." in run.stdout
    assert "\x1b" not in run.stdout
    assert "hooks that never ran in this session: python3" in run.stdout


@pytest.mark.slow
def test_a_killed_session_knows_which_hooks_have_run(program: Program) -> None:
    set_hooks(
        program,
        f"""
        [[hooks]]
        event = "session_start"
        command = "echo began >> {program.folder}/order"
        where = "host"
        [[hooks]]
        event = "before_finish"
        command = "echo gate >> {program.folder}/order; test -e {program.folder}/open || exec sleep 60"
        where = "host"
        """,
    )
    order = program.folder / "order"
    model = program.script(finish(), finish())
    flags = ("run", "greet", "--model", model, "--sandbox", "none")
    with subprocess.Popen([HANDIWORK, *flags], cwd=program.workspace, env=program.environment, text=True) as killed:
        deadline = time.monotonic() + PATIENCE
        while "gate" not in (order.read_text() if order.exists() else ""):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(killed.pid, signal.SIGKILL)
    (program.folder / "open").touch()
    resumed = program("resume")
    assert resumed.returncode == 0, resumed.stdout
    assert order.read_text().split() == ["began", "gate", "gate"]
    runs = [(event["point"], event["exit_code"]) for event in program.events() if event["type"] == "HookEvent"]
    assert runs == [("session_start", 0), ("before_finish", 0)]
