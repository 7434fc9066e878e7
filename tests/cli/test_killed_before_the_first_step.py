"""kill -9 as soon as the session is in the list: its message is there, and resume carries it out."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish

FILES = 500
"""So many that copying them takes a while."""


def fill(workspace: Path) -> None:
    for number in range(FILES):
        (workspace / f"file-{number}").write_text(f"{number}\n")


def until_stored(data: Path, query: str) -> None:
    """Wait until the database has a row for the query."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with sqlite3.connect(f"file:{data}/handiwork.db?mode=ro", uri=True) as database:
                if database.execute(query).fetchone():
                    return
        except sqlite3.OperationalError:
            pass  # the file, or its tables, are still to come
        time.sleep(0.001)
    raise AssertionError(f"{query} found nothing")


def killed(program: Program, query: str, *arguments: str) -> None:
    """Run the program until the database has a row for the query, and kill it."""
    process = subprocess.Popen(
        [HANDIWORK, *arguments, "--json"],
        cwd=program.workspace,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_stored(program.data, query)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def messages(events: list[dict[str, Any]]) -> list[str]:
    return [event["content"] for event in events if event["type"] == "MessageAction" and event["source"] == "user"]


def resumed(program: Program) -> list[dict[str, Any]]:
    """Resume the newest session, which must finish, and return its events."""
    done = program("resume", "--json")
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert json.loads(done.stdout.splitlines()[-1])["type"] == "AgentFinishAction"
    return program.events()


@pytest.mark.slow
def test_a_run_that_is_killed_once_it_is_listed_goes_on_with_its_message(program: Program) -> None:
    fill(program.workspace)
    model = program.script(finish())
    killed(program, "SELECT id FROM sessions", "run", "greet the world", "--model", model, "--sandbox", "none")
    assert "  interrupted  " in program("sessions").stdout
    assert "outcome  interrupted" in program("show").stdout
    assert ", interrupted, " in program("tree").stdout
    assert json.loads(program("sessions", "--json").stdout)["interrupted"]
    events = resumed(program)
    assert [event["type"] for event in events[:2]] == ["SessionStarted", "MessageAction"]
    assert messages(events) == ["greet the world"]


@pytest.mark.slow
def test_a_resumed_session_that_is_killed_has_the_new_message(program: Program) -> None:
    model = program.script(bash("true"), finish(), bash("true", delay=30))
    assert program("run", "greet the world", "--model", model, "--sandbox", "none").returncode == 0
    head = len(program.events())
    killed(program, f"SELECT id FROM events WHERE id > {head}", "resume", "--message", "greet the moon")
    assert program.events()[head]["content"] == "greet the moon"
    program.script(bash("true"), finish(), finish())
    assert messages(resumed(program)) == ["greet the world", "greet the moon"]


@pytest.mark.slow
def test_a_fork_that_is_killed_once_it_is_listed_has_its_message(program: Program) -> None:
    model = program.script(bash("echo one > one"), finish(), finish())
    assert program("run", "greet the world", "--model", model).returncode == 0
    head = len(program.events())
    forks = "SELECT id FROM sessions WHERE parent IS NOT NULL"
    killed(program, forks, "fork", "--at", str(head), "--message", "greet the moon")
    assert messages(resumed(program)) == ["greet the world", "greet the moon"]


@pytest.mark.slow
def test_a_session_without_a_task_says_what_to_do(program: Program) -> None:
    model = program.script(finish())
    assert program("run", "greet the world", "--model", model).returncode == 0
    made = program("fork", "--at", "1").stdout.strip()
    assert "  no task yet  " in program("sessions").stdout
    done = program("resume", made)
    assert done.returncode == 2
    assert f"session {made} has no task yet" in done.stderr
    assert "--message" in done.stderr
