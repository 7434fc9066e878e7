"""A session whose files are damaged says so, and what to do; other sessions are not affected."""

from __future__ import annotations

import pytest

from tests.cli.program import Program, edit, finish

pytestmark = pytest.mark.slow


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
    assert [row.split("  ")[-1].strip() for row in listed.stdout.splitlines()] == ["a second task", "greet the world"]
    assert program("diff").returncode == 0
