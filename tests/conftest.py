"""What holds for all tests: no example is judged by how long it takes, and one process has Docker's tests."""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

settings.register_profile("handiwork", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("handiwork")


class ByFile(LoadFileScheduling):
    """Gives each process whole files, and one of them all of tests/docker, which share a daemon."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/docker" if nodeid.startswith("tests/docker/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of the slowest files, as many as ``--durations`` asks for slowest tests."""
    shown: int | None = terminalreporter.config.getoption("durations")
    if not shown:
        return
    reports = [r for rs in terminalreporter.stats.values() for r in rs if isinstance(r, pytest.TestReport)]
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section(f"slowest {shown} files of {sum(seconds.values()):.0f} s")
    for file, duration in sorted(seconds.items(), key=lambda item: -item[1])[:shown]:
        terminalreporter.write_line(f"{duration:.2f}s {file}")


@pytest.fixture
def new_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be a user without settings, whose sessions are in tmp_path / "data"; a socket's path must be short."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
def node_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the Node with which ``make setup`` installs the page's packages on the PATH."""
    command = [Path(__file__).parent.parent / "scripts/web.sh", "path"]
    monkeypatch.setenv("PATH", subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
