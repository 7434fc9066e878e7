"""kill -9 and full disks at random points of everything that Handiwork does: nothing acknowledged is lost.

HANDIWORK_CRASH_KILLS is the number of kills, HANDIWORK_CRASH_SEED chooses the points: with those of a run that failed
its points are met again, as nearly as the machine's speed allows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.conftest import namespaces_allowed

pytestmark = pytest.mark.skipif(not namespaces_allowed(), reason="this machine allows no user namespaces")


def crash(kills: int, *kinds: str) -> None:
    """Run the campaign in a process of its own, which shows its progress on stderr."""
    kills = int(os.environ.get("HANDIWORK_CRASH_KILLS", kills))
    # Another seed for each run; the message of a failure has it.
    seed = os.environ.get("HANDIWORK_CRASH_SEED", str(os.getppid()))
    command = [sys.executable, "-m", "tests.crash.campaign", str(kills), seed, *kinds]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, f"HANDIWORK_CRASH_KILLS={kills} HANDIWORK_CRASH_SEED={seed} repeats it"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_few_kills_of_everything() -> None:
    crash(10)


@pytest.mark.campaign
@pytest.mark.timeout(7200)
def test_a_thousand_kills_of_everything() -> None:
    crash(1000)
