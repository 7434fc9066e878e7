"""The kind "none" runs actions on this machine; names choose among the kinds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.sandbox.bubblewrap import seccomp
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.sandbox.create import create
from handiwork.sandbox.host import HostSandbox
from handiwork.workspace.layers import SandboxPaths
from tests.sandbox.helpers import Blobs, Box, output, run


async def test_actions_run_as_the_calling_user_in_the_working_copy(project: Path, blobs: Blobs) -> None:
    sandbox = HostSandbox(project, blobs.save)
    await sandbox.start()
    try:
        assert await output(sandbox, "pwd; id -u") == f"{project}\n{os.getuid()}"
        pid = int(await output(sandbox, "(sleep 1000 & echo $!)"))
        assert Path(f"/proc/{pid}").exists()
    finally:
        await sandbox.close()
    # A process that nobody has waited for yet is a zombie, without a command line.
    left = Path(f"/proc/{pid}/cmdline")
    assert not left.exists() or left.read_bytes() == b""


async def test_the_copy_is_used_where_there_is_one(project: Path, tmp_path: Path, blobs: Blobs) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    assert create("none", SandboxPaths(tmp_path, project, copy), blobs.save).workspace == str(copy)
    assert create("none", SandboxPaths(tmp_path, project), blobs.save).workspace == str(project)


async def test_bubblewrap_is_made_by_name(box: Box, project: Path, blobs: Blobs) -> None:
    made = create("bubblewrap", SandboxPaths(box.session_dir, project), blobs.save)
    assert isinstance(made, BubblewrapSandbox)
    assert (made.name, made.workspace) == ("bubblewrap", str(project))


async def test_an_unknown_name_is_refused(project: Path, tmp_path: Path, blobs: Blobs) -> None:
    with pytest.raises(SandboxError, match="bubblewrap"):
        create("chroot", SandboxPaths(tmp_path, project), blobs.save)


@pytest.mark.parametrize("place", ["base", "."])
async def test_a_missing_place_is_said_and_it_starts_when_it_is_back(box: Box, place: str) -> None:
    sandbox = box.make()
    missing = box.session_dir / place
    missing.rename(box.project.parent / "elsewhere")
    with pytest.raises(SandboxError, match=str(missing)):
        await sandbox.start()
    (box.project.parent / "elsewhere").rename(missing)
    await sandbox.start()
    assert (await run(sandbox, "true")).exit_code == 0


async def test_a_session_whose_files_are_broken_is_said(box: Box) -> None:
    sandbox = box.make()
    (box.session_dir / "home").symlink_to("nowhere")
    with pytest.raises(SandboxError, match="home"):
        await sandbox.start()


def test_a_machine_whose_system_calls_have_other_numbers_is_refused() -> None:
    with pytest.raises(SandboxError, match="aarch64"):
        seccomp.program("aarch64")


async def test_secrets_in_the_environment_are_not_for_commands(
    project: Path, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("OPENAI_API_KEY", "GH_TOKEN", "CLIENT_SECRET_ID", "DB_PASSWORD", "AWS_PROFILE", "HANDIWORK_LLM", "token")
    for name in secrets:
        monkeypatch.setenv(name, "sk-host-secret")
    monkeypatch.setenv("MONKEY_PATCHED", "seen")
    monkeypatch.setenv("HOME", str(project))
    (project / ".bashrc").write_text("export OPENAI_API_KEY=sk-host-secret")
    sandbox = HostSandbox(project, blobs.save)
    await sandbox.start()
    try:
        assert await output(sandbox, "env | grep -c sk-host-secret || echo $MONKEY_PATCHED") == "0\nseen"
    finally:
        await sandbox.close()
