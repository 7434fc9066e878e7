"""A session whose files are damaged says so, and what to do; other sessions are not affected."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program, edit, finish

pytestmark = pytest.mark.slow


def store_settings(data: Path, **settings: Any) -> str:
    """Change the stored settings of the only session, and return its id."""
    with sqlite3.connect(data / "handiwork.db") as database:
        session, text = database.execute("SELECT session, json FROM events WHERE type = 'SessionStarted'").fetchone()
        started = json.loads(text)
        started["settings"].update(settings)
        database.execute("UPDATE events SET json = ? WHERE type = 'SessionStarted'", (json.dumps(started),))
    database.close()
    return session


@pytest.mark.parametrize("name", ["workspace.json", "manifest.json"])
def test_a_damaged_file_of_a_session_is_named_and_others_work(program: Program, name: str) -> None:
    program.run(edit("greeting.txt", "hello", "good day"), finish())
    (file,) = program.data.rglob(name)
    session = file.parent.name
    program("run", "a second task", "--model", program.script(finish()), "--sandbox", "none")
    file.write_text('{"source": ')
    for command in (("diff", session), ("apply", session), ("resume", session, "--message", "go on")):
        done = program(*command)
        said = done.stdout + done.stderr
        assert done.returncode != 0, (command, said)
        assert "Traceback" not in said
        assert f"{file} is missing or damaged" in " ".join(said.split()), (command, said)
        assert "restore it from a backup, or delete the session" in " ".join(said.split())
    listed = program("sessions")
    assert listed.returncode == 0
    assert [row.split("  ")[-2].strip() for row in listed.stdout.splitlines()] == ["a second task", "greet the world"]
    assert program("diff").returncode == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sandbox": "martian"}, "(sandbox: Input should be 'bubblewrap', 'docker' or 'none')"),
        ({"limits": None}, "(limits: Input should be a valid dictionary or instance of Limits)"),
        ({"allow_net": "example.org", "model": 7}, "(allow_net: Input should be a valid tuple; model: "),
        ({"agent": "Nobody"}, "there is no agent 'Nobody'; installed: "),
    ],
)
def test_stored_settings_that_cannot_be_used_are_named(
    program: Program, settings: dict[str, Any], message: str
) -> None:
    program.run(edit("greeting.txt", "hello", "good day"), finish())
    session = store_settings(program.data, **settings)
    resumed = program("resume", session, "--message", "go on")
    assert resumed.returncode == 2
    assert message in resumed.stderr
    assert session in program("sessions").stdout
