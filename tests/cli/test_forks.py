"""`handiwork fork`, `tree`, `diff --from --to` and `gc`, as a user types them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish
from tests.cli.test_killed_before_the_first_step import fill
from tests.sandbox.conftest import namespaces_allowed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not namespaces_allowed(), reason="this machine allows no user namespaces"),
]


def test_a_session_is_forked_with_its_files_and_goes_on(program: Program) -> None:
    model = program.script(bash("echo one > greeting.txt"), bash("echo two > greeting.txt"), finish())
    assert program("run", "greet", "--model", model).returncode == 0
    events = program.events()
    first, second = (event["id"] for event in events if event["type"] == "CmdOutputObservation")
    origin = program("sessions").stdout.split()[0]

    between = program("diff", "--from", str(first), "--to", str(second))
    assert "-one\n+two\n" in between.stdout
    for numbers, why in (
        (("--from", "999"), "has no event 999: its events are 1 to"),
        (("--to", "-1"), "has no event -1"),
    ):
        refused = program("diff", *numbers)
        assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
    forked = program("fork", origin, "--at", str(first))
    assert forked.returncode == 0, forked.stderr
    name = forked.stdout.strip()
    assert f"handiwork resume {name}" in forked.stderr
    as_json = program("fork", origin, "--at", str(first), "--json")
    assert json.loads(as_json.stdout).keys() == {"session"}
    assert "-hello\n+one\n" in program("diff", name).stdout

    other = program.script(bash("true"), bash("echo three >> greeting.txt"), finish("Forked."))
    went_on = program("fork", origin, "--at", str(first), "--model", other, "--message", "go on")
    assert (went_on.returncode, "Forked." in went_on.stdout) == (0, True), went_on.stderr
    assert "-hello\n+one\n+three\n" in program("diff").stdout

    lines = program("tree", name).stdout.splitlines()
    assert lines[0].startswith(origin)
    assert len(lines) == 4
    assert all(line.startswith("  ") and f"at event {first}," in line for line in lines[1:])
    assert "-hello\n+two\n" in program("diff", origin).stdout


def test_a_fork_is_applied_after_its_origin(program: Program) -> None:
    one = [bash("sed -i s/hello/one/ greeting.txt; echo new > added.txt"), finish()]
    assert program("run", "greet", "--model", program.script(*one)).returncode == 0
    origin = program("sessions").stdout.split()[0]
    assert program("apply", origin).returncode == 0
    two = program.script(*one, bash("sed -i s/one/two/ greeting.txt; echo more >> added.txt"), finish(), name="two")
    head = str(len(program.events()))
    forked = program("fork", origin, "--at", head, "--model", two, "--message", "now say two")
    assert forked.returncode == 0, forked.stderr
    applied = program("apply", program("sessions").stdout.split()[0])
    assert applied.returncode == 0, applied.stderr
    assert (program.workspace / "greeting.txt").read_text() == "two\n"
    assert (program.workspace / "added.txt").read_text() == "new\nmore\n"


def test_what_cannot_be_forked_is_said_with_the_reason(program: Program) -> None:
    assert program.run(finish()).returncode == 0
    refused = program("fork", "--at", "3")
    assert (refused.returncode, "does not work on a copy in a sandbox" in refused.stderr) == (2, True)
    assert program("fork", "--at", "3", "--restore", "nothing").returncode == 2


def test_room_is_made_and_told(program: Program) -> None:
    model = program.script(bash("echo one > greeting.txt"), finish())
    assert program("run", "greet", "--model", model).returncode == 0
    collected = program("gc")
    assert (collected.returncode, "freed 0 bytes; snapshots take" in collected.stderr) == (0, True), collected.stderr
    assert "snapshots" in program("doctor").stdout


def copied_bytes(data: Path) -> int:
    """Return the size of the files that sessions have copied from the workspace so far."""
    return sum(file.stat().st_size for file in data.glob("sessions/*/base/file-*"))


def test_what_a_killed_run_left_is_removed(program: Program) -> None:
    fill(program.workspace)
    model = program.script(finish())
    process = subprocess.Popen(
        [HANDIWORK, "run", "greet", "--model", model, "--sandbox", "none"],
        cwd=program.workspace,
        env=program.environment,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE
    # The first file may still be empty: a folder without a byte frees none.
    while not copied_bytes(program.data) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert program("sessions").stdout == ""
    collected = program("gc")
    assert " of session folders; snapshots take" in collected.stderr, collected.stderr
    assert list(program.data.glob("sessions/*")) == []
    assert "freed 0 bytes" in program("gc").stderr


def test_of_several_candidates_the_best_is_shown_and_can_be_applied(program: Program) -> None:
    good = program.script(bash("echo better > greeting.txt"), finish())
    bad = program.script(bash("echo worse > greeting.txt"), finish(), name="bad")
    asked = ("best-of", "2", "greet better", "--test", "grep better greeting.txt", "--models", f"{bad},{good}")
    held = program(*asked)
    assert held.returncode == 0, held.stderr
    assert "-hello\n+better\n" in held.stdout
    assert [line.split()[2] for line in held.stdout.splitlines() if line.startswith(("1  ", "2  "))] == [
        *("passes", "fails")
    ]
    best = next(line.split()[-1] for line in held.stdout.splitlines() if "handiwork apply" in line)
    assert program("apply", best).returncode == 0
    assert (program.workspace / "greeting.txt").read_text() == "better\n"
    none = program("best-of", "1", "greet", "--test", "false", "--model", bad, "--json")
    assert (none.returncode, '"passed": false' in none.stdout, '"best": null' in none.stdout) == (1, True, True)
    sessions = program("sessions").stdout
    for models, why in ((f"{good},scripted:missing.jsonl", "missing.jsonl"), (" , ", "--models names no model")):
        refused = program("best-of", "2", "greet", "--test", "true", "--models", models)
        assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
    assert program("sessions").stdout == sessions
