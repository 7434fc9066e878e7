"""Runs pytest with the given options; ``make test`` and ``make test-slow`` call it.

A test that fails fails. Only for tests marked ``browser`` or ``docker`` there is a second run, one by one, because
Chromium or a Docker daemon may be late on a loaded machine. The end lists the tests that passed only then as flaky.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

SECOND_RUN = ("-n", "0", "-v", "-m", "browser or docker", "--last-failed", "--last-failed-no-failures", "none")


def main(options: Sequence[str]) -> int:
    """Return pytest's exit code, 0 if every failed test passed in its second run."""
    with tempfile.TemporaryDirectory() as cache:
        code = run_pytest(cache, options)
        failed = last_failed(cache)
        if code != pytest.ExitCode.TESTS_FAILED:
            return code
        print("=== the second run: failed tests of a browser or a Docker daemon", flush=True)
        run_pytest(cache, [*options, *SECOND_RUN])
        failed_again = last_failed(cache)
    for title, tests in (("failed", failed_again), ("flaky", failed - failed_again)):
        if tests:
            print(f"=== {title}", *sorted(tests), sep="\n  ", flush=True)
    return code if failed_again else 0


def run_pytest(cache: str, options: Sequence[str]) -> int:
    """Run pytest, which remembers failed tests in the folder ``cache``, and return its exit code."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *options]
    return subprocess.run(command, check=False).returncode


def last_failed(cache: str) -> set[str]:
    """Return the ids of the tests that failed when they last ran."""
    file = Path(cache, "v/cache/lastfailed")
    return set(json.loads(file.read_text())) if file.exists() else set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
