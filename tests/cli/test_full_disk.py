"""A session whose machine runs out of disk says that it is the machine's, and goes on once there is space."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish
from tests.crash.full_disk import missing

DISK = """
mount -t tmpfs -o size=256m none "$1" || exit 99
"$2" run "fill most of the disk" --model "$3" --sandbox bubblewrap --max-iterations 1
echo "first: $?"
mount -o remount,size=4g "$1"
"$2" resume --max-iterations 5
echo "second: $?"
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "a disk of a chosen size can be made")
def test_a_session_says_that_the_machines_disk_is_full_and_finishes_after_space_is_there(program: Program) -> None:
    program.data.mkdir()
    fill, go_on = (
        "for i in $(seq 100); do head -c 1M /dev/zero >> big; sleep 0.1; done; sleep 60",
        "rm -f big; echo room > small && cat small",
    )
    model = program.script(bash(fill), bash(go_on), finish("There is room."))
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", DISK, "sh", program.data, HANDIWORK, model],
        cwd=program.workspace,
        env={**program.environment, "TMPDIR": os.environ.get("TMPDIR", "/tmp")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    first, _, second = done.stdout.partition("first: 3")
    assert "the disk of this machine is nearly full" in first, done.stdout + done.stderr
    assert "the user has to free some space, and can then resume the session" in first
    assert "disk limit" not in done.stdout
    assert "There is room." in second
    assert "second: 0" in second
    assert "Traceback" not in done.stdout + done.stderr
