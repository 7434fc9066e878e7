"""``handiwork run --image`` as a user runs it: recorded in the session, and the same when it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.harness.images import image
from tests.cli.conftest import cache, program
from tests.cli.program import Program, bash, finish

__all__ = ["cache", "program"]


@pytest.mark.usefixtures("docker_daemon")
def test_a_session_runs_and_goes_on_in_its_image(program: Program) -> None:
    name = image("musl")
    look = bash("[ -e /lib/ld-musl-x86_64.so.1 ] && echo musl; echo bye > greeting.txt")
    model = program.script(look, finish())
    run = program("run", "greet the world", "--model", model, "--image", name, "--max-iterations", "1")
    assert run.returncode == 3, run.stderr
    assert f"docker {name}" in run.stdout
    assert "\n  musl\n" in run.stdout
    assert Path(program.workspace, "greeting.txt").read_text() == "hello\n"
    resumed = program("resume", "--max-iterations", "9")
    assert resumed.returncode == 0, resumed.stderr
    started = [event for event in program.events() if event["type"] == "SessionStarted"]
    assert [(event["sandbox"], event["settings"]["image"]) for event in started] == [("docker", name)] * 2
    assert "+bye" in program("diff").stdout
    assert program("apply").returncode == 0
    assert Path(program.workspace, "greeting.txt").read_text() == "bye\n"
