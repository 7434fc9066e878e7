"""The limits are held at the best level that the machine and the user have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handiwork.sandbox.limits import cgroups
from handiwork.sandbox.limits.cgroups import ControlGroups, Counters, level
from handiwork.sandbox.limits.limits import ResourceLimits, machine_memory
from tests.sandbox.helpers import PYTHON, Box, output, run

SYSTEMD_RUN = """#!/bin/sh
# As systemd-run does, but that there is no systemd to ask: notes what is asked for, becomes the command.
echo "$*" >> {asked}
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


def test_by_default_a_part_of_the_machine() -> None:
    assert ResourceLimits().memory < machine_memory()


def test_what_version_2_is_told_and_what_it_counts(tmp_path: Path) -> None:
    limits = ResourceLimits(memory=1 << 30, processes=100)
    groups = ControlGroups({"unified": tmp_path / "group"}, limits)
    (folder,) = groups.folders.values()
    assert (folder / "memory.max").read_text() == str(1 << 30)
    assert (folder / "pids.max").read_text() == "100"
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n")
    (folder / "pids.events").write_text("max 0\n")
    counters = Counters([folder])
    assert not counters.risen("memory")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n")
    (folder / "pids.events").write_text("max 4\n")
    assert counters.risen("memory")
    assert counters.risen("processes")
    assert not counters.risen("processes")


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes groups of version 1")
def test_root_has_groups_of_its_own() -> None:
    assert level().startswith("held by the kernel")


async def test_in_a_group_of_somebody_else_the_limits_are_watched(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a container with version 2: its group counts, and this process can make no other.
    own = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].partition("\n")[0]
    group = tmp_path / "groups" / own
    group.mkdir(parents=True)
    (group / "memory.events").write_text("oom_kill 0\n")
    (group / "pids.events").write_text("max 0\n")
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path / "groups")
    cgroups.systemd_answers.cache_clear()
    assert level().startswith("watched")
    sandbox = box.make(limits=ResourceLimits(memory=150 << 20))
    await sandbox.start()
    observation = await run(sandbox, f"{PYTHON} -c \"x = b'x' * (200 << 20); import time; time.sleep(2)\"")
    assert (observation.exit_code, observation.limit) == (137, "memory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root does not ask a user's systemd")
async def test_the_users_systemd_is_asked(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/systemd-run"
    program.write_text(SYSTEMD_RUN.format(asked=asked))
    program.chmod(0o755)
    Path(os.environ["XDG_RUNTIME_DIR"], "systemd/private").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    cgroups.systemd_answers.cache_clear()
    try:
        sandbox = box.make(limits=ResourceLimits(memory=1 << 30, processes=100, cpus=1.5))
        await sandbox.start()
        assert await output(sandbox, "echo alive") == "alive"
    finally:
        cgroups.systemd_answers.cache_clear()
    assert "--property=MemoryMax=1073741824" in asked.read_text()
    assert "--property=TasksMax=100 --property=CPUWeight=50 --property=CPUQuota=150%" in asked.read_text()
