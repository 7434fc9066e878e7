"""In place the agent works on the user's own files, but never on what the user's git reads its orders from."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.workspace.layers import git_layers
from tests.sandbox.helpers import Box, git, output, run

PLANTS = {
    "a hook": "cp evil.sh .git/hooks/pre-commit",
    "a monitor": "git config core.fsmonitor ./evil.sh",
    "a common directory": "cp -r .git common; git config -f common/config core.fsmonitor ./evil.sh; "
    "echo ../common > .git/commondir",
    "a configuration of the worktree": "git config extensions.worktreeConfig true; "
    "git config --worktree core.fsmonitor ./evil.sh",
    "attributes": "git config filter.evil.clean ./evil.sh; echo '* filter=evil' > .git/info/attributes",
    "another repository": "cp -r .git new; mv .git old; git config -f new/config core.fsmonitor ./evil.sh; mv new .git",
}


@pytest.fixture
def witness(tmp_path: Path, project: Path) -> Path:
    """A file that is made when the host runs the project's evil.sh; inside there is no such place."""
    found = tmp_path / "witness"
    script = project / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {found} 2>/dev/null\ncat\n")
    script.chmod(0o755)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return found


def use_git(project: Path) -> None:
    """What users do."""
    with (project / "README").open("a") as file:
        file.write("by the user\n")
    git(project, "status")
    git(project, "diff")
    git(project, "commit", "-qam", "second")


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_each_plant_would_be_run_by_git(plant: str, project: Path, witness: Path) -> None:
    subprocess.run(["sh", "-ec", plant], cwd=project, check=True)
    with suppress(subprocess.CalledProcessError):  # what is planted does its work and then fails
        use_git(project)
    assert witness.exists()


async def test_nothing_that_is_planted_is_run_by_the_users_git(box: Box, witness: Path) -> None:
    sandbox = box.in_place()
    await sandbox.start()
    for plant in PLANTS.values():
        await run(sandbox, plant)
    await run(sandbox, "rm -rf .git/*")
    assert (await run(sandbox, "mv .git elsewhere || rmdir .git")).exit_code != 0
    use_git(box.project)
    await sandbox.close()
    use_git(box.project)
    assert not witness.exists()
    assert git(box.project, "log", "--format=%s").split() == ["second", "second", "first"]


async def test_the_agents_own_commits_work_and_are_kept_with_the_session(box: Box, witness: Path) -> None:
    sandbox = box.in_place()
    await sandbox.start()
    await output(sandbox, "echo more >> README && git status && git add -A && git commit -qm mine")
    await sandbox.close()
    await sandbox.start()
    assert await output(sandbox, "git status --short; git log --format=%s") == "mine\nfirst"
    assert git(box.project, "log", "--format=%s").split() == ["first"]
    assert (git_layers(box.session_dir) / "upper/refs/heads").is_dir()


async def test_files_stay_the_owners(box: Box) -> None:
    if os.geteuid() == 0:
        for path in (box.project, *box.project.rglob("*")):
            os.chown(path, 4321, 4321)
    owner = box.project.stat().st_uid
    sandbox = box.in_place()
    await sandbox.start()
    await output(sandbox, "echo more >> README; mkdir new; echo x > new/file; rm src/main.py; git add -A")
    assert (box.project / "README").read_text() == "read me\nmore\n"
    assert not (box.project / "src/main.py").exists()
    for name in ("README", "new", "new/file"):
        assert (box.project / name).stat().st_uid == owner


async def test_a_repository_that_the_agent_makes_is_not_the_users(box: Box) -> None:
    shutil.rmtree(box.project / ".git")
    first, second = box.in_place(), box.in_place()
    await first.start()
    await output(first, "git init -q && git add -A && git commit -qm mine && git config core.fsmonitor ./evil.sh")
    await second.start()
    await second.close()
    assert list((box.project / ".git").iterdir()) == []
    assert await output(first, "git log --format=%s") == "mine"
    await first.close()
    assert not (box.project / ".git").exists()


async def test_a_linked_worktree_keeps_its_way_to_the_repository(box: Box, witness: Path) -> None:
    git(box.project, "worktree", "add", "-q", "../linked")
    linked = Box(box.session_dir, box.project.parent / "linked", box.blobs, box.stack)
    sandbox = linked.in_place()
    await sandbox.start()
    for attempt in ("echo gitdir: evil > .git", "rm .git", "mv .git elsewhere"):
        assert (await run(sandbox, attempt)).exit_code != 0, attempt
    git(linked.project, "status")


async def test_submodules_cannot_be_changed_or_put_aside(box: Box, witness: Path) -> None:
    git(box.project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../project", "libs/sub")
    sandbox = box.in_place()
    await sandbox.start()
    for attempt in ("echo gitdir: evil > libs/sub/.git", "mv libs/sub elsewhere", "mv libs elsewhere"):
        assert (await run(sandbox, attempt)).exit_code != 0, attempt
    await output(sandbox, "echo x > libs/new; git -C libs/sub log; git add libs && git commit -qm sub")
    await sandbox.close()
    shutil.rmtree(box.project / "libs")
    with pytest.raises(SandboxError, match="libs/sub is a submodule"):
        await sandbox.start()


async def test_a_repository_behind_a_link_is_refused(box: Box) -> None:
    (box.project / ".git").rename(box.project.parent / "git")
    (box.project / ".git").symlink_to("../git")
    with pytest.raises(SandboxError, match="symbolic link"):
        await box.in_place().start()


async def test_a_start_that_is_cancelled_leaves_nothing_in_the_directory(box: Box) -> None:
    shutil.rmtree(box.project / ".git")
    for number in range(2_000):
        (box.project / f"deep/{number}").mkdir(parents=True)
    sandbox = box.in_place()
    starting = asyncio.create_task(sandbox.start())
    while not list(box.session_dir.parent.parent.glob("in-place/*")):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await sandbox.close()
    assert not (box.project / ".git").exists()
    assert not list(box.session_dir.parent.parent.glob("in-place/*"))
