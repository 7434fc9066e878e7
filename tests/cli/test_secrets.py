"""``--secret`` on the command line."""

from __future__ import annotations

import pytest

from tests.cli.program import Program, bash, finish

VALUE = "s3cr3t-Value/of+it"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_secret_of_the_environment_is_used_and_never_kept_and_resume_says_when_it_is_missing(program: Program):
    model = program.script(bash('echo "[$TOKEN]"; test "$TOKEN" = "$(cat expected)" && echo same'), finish(), finish())
    (program.workspace / "expected").write_text(VALUE)
    ran = program("run", f"use {VALUE}", "--model", model, "--secret", "TOKEN", TOKEN=VALUE)
    assert ran.returncode == 0, ran.stderr
    assert "[secret TOKEN]" in ran.stdout
    assert "same" in ran.stdout
    assert VALUE not in ran.stdout + ran.stderr
    stored = [path for path in program.data.rglob("*") if path.is_file() and path.name != "expected"]
    assert not [path for path in stored if VALUE.encode() in path.read_bytes()]

    missing = program("resume", "--message", "again")
    assert missing.returncode == 2
    assert "the secret TOKEN is missing: set the environment variable TOKEN" in missing.stderr
    (program.folder / "token").write_text(f"{VALUE}\n")
    again = program("resume", "--message", "again", "--secret", f"TOKEN=@{program.folder / 'token'}")
    assert again.returncode == 0, again.stderr


def test_a_value_on_the_command_line_is_refused(program: Program):
    ran = program("run", "x", "--model", program.script(finish()), "--secret", f"TOKEN={VALUE}")
    assert ran.returncode == 2
    assert "--secret TOKEN=@FILE" in ran.stderr
    assert VALUE not in ran.stderr
