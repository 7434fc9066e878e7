"""The demo: an agent finds and repairs the bug of a small repository, with a local model, in the sandbox.

`make demo` runs it. The repository is made anew in build/demo, with a virtual environment of its own; the
session, with every event, is kept in build/demo/data. Exits with 0 only if the repository's tests pass after
the agent's change was applied, and failed before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TASK = "The test suite fails. Find out why, and repair the code so that python -m pytest passes."
BIN = Path(sys.executable).parent


IDENTITY = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost")


def say(text: str) -> None:
    """Print a heading."""
    print(f"\n=== {text}", flush=True)


def make_repository(place: Path) -> None:
    """Make the git repository with its virtual environment, as a developer has it."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(Path(__file__).parent / "todo", place)
    (place / ".gitignore").write_text(".venv/\n__pycache__/\n.pytest_cache/\n")
    uv = str(BIN / "uv")
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, ".venv"],
        [uv, "pip", "install", "--quiet", "--python", ".venv", "pytest"],
        ["git", "init", "--quiet"],
        ["git", "add", "--all"],
        ["git", *IDENTITY, "commit", "--quiet", "-m", "A list of tasks"],
    ):
        subprocess.run(command, cwd=place, check=True)


def tests_pass(place: Path) -> bool:
    """Run the repository's own tests with its own environment, showing how they end."""
    done = subprocess.run(
        [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=place, capture_output=True, text=True
    )
    print("\n".join(done.stdout.splitlines()[-3:]), flush=True)
    return done.returncode == 0


def main() -> int:
    """Run the demo; return 0 only if it did what it shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=ROOT / "build" / "demo", help="folder for repository and data")
    place: Path = parser.parse_args().place.absolute()
    repository = place / "todo"
    handiwork = str(BIN / "handiwork")
    environment = {**os.environ, "HANDIWORK_DATA": str(place / "data")}

    say("a repository with a bug: its tests")
    make_repository(repository)
    if tests_pass(repository):
        print("The tests pass already: the demo shows nothing.")
        return 1

    say("an agent repairs it")
    run = subprocess.run([handiwork, "run", TASK, "--workspace", str(repository)], env=environment)
    if run.returncode != 0:
        print(f"The agent did not finish (exit code {run.returncode}).")
        return run.returncode

    say("the change is applied; the tests again")
    subprocess.run([handiwork, "apply"], env=environment, check=True)
    return 0 if tests_pass(repository) else 1


if __name__ == "__main__":
    sys.exit(main())
