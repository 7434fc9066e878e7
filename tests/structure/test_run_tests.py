"""scripts/run_tests.py: which failed tests get a second run, and how the end tells it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts/run_tests.py"
INI = "[pytest]\naddopts = -q -m 'not crash'\nmarkers = browser\n    docker\n    slow\n    crash\n"
ONLY_XDIST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
"""Of the plugins here, only what the program itself uses: the others take seconds to import."""
TEST = """
import os, pytest

{mark}
def test_{name}():
    with open("{name}.runs", "a") as runs:
        runs.write("x")
    assert os.path.getsize("{name}.runs") > {failures}
"""


class Suite:
    """A folder of tests that fail so often before they pass, and the program that runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text(INI)

    def add(self, name: str, failures: int, *marks: str) -> None:
        mark = "\n".join(f"@pytest.mark.{mark}" for mark in marks)
        (self.folder / f"test_{name}.py").write_text(TEST.format(name=name, failures=failures, mark=mark))

    def run(self, *options: str) -> tuple[int, list[str]]:
        """Return the exit code and the lines that tell of tests that failed, of the end of the output."""
        done = subprocess.run(
            [sys.executable, SCRIPT, *options],
            env={**os.environ, **ONLY_XDIST}, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        ends = [number for number, line in enumerate(lines) if line in ("=== failed", "=== flaky")]
        return done.returncode, lines[ends[0] :] if ends else []

    def runs(self, name: str) -> int:
        return len((self.folder / f"{name}.runs").read_text())


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_only_tests_of_a_browser_or_a_daemon_get_a_second_run(suite: Suite) -> None:
    suite.add("shell", 1)
    suite.add("page", 1, "browser", "slow")
    suite.add("image", 1, "docker")
    suite.add("window", 2, "browser")
    suite.add("good", 0, "browser")
    code, end = suite.run("-n", "2")
    assert code == 1
    assert end == [
        "=== failed",
        "  test_shell.py::test_shell",
        "  test_window.py::test_window",
        "=== flaky",
        "  test_image.py::test_image",
        "  test_page.py::test_page",
    ]
    assert {name: suite.runs(name) for name in ("shell", "page", "window", "good")} == {
        "shell": 1,
        "page": 2,
        "window": 2,
        "good": 1,
    }


def test_flaky_tests_alone_do_not_fail_the_run(suite: Suite) -> None:
    suite.add("page", 1, "browser")
    assert suite.run() == (0, ["=== flaky", "  test_page.py::test_page"])


def test_a_test_that_needs_no_browser_fails_the_run_at_once(suite: Suite) -> None:
    suite.add("shell", 1)
    assert suite.run() == (1, ["=== failed", "  test_shell.py::test_shell"])
    assert suite.runs("shell") == 1


def test_a_run_without_failures_tells_nothing(suite: Suite) -> None:
    suite.add("good", 0)
    assert suite.run() == (0, [])


def test_options_that_pytest_refuses_are_an_error(suite: Suite) -> None:
    suite.add("good", 0)
    assert suite.run("--no-such-option") == (pytest.ExitCode.USAGE_ERROR, [])
