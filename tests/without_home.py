from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_without_home(script: str, folder: Path) -> str:
    """Return what a Python script prints that a user without HOME, whom the system does not know, runs in a folder."""
    done = subprocess.run(
        ["unshare", "--user", "--map-user=54321", sys.executable, "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[1]), "HANDIWORK_DATA": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
