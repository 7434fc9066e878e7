"""The kind "none" runs actions on this machine; names choose among the kinds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from boxes import Blobs, Box, output, run

from handiwork.sandbox.base import SandboxError
from handiwork.sandbox.bubblewrap import BubblewrapSandbox
from handiwork.sandbox.create import create
from handiwork.sandbox.host import HostSandbox


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
    assert create("none", tmp_path, project, blobs.save, base=copy).workspace == str(copy)
    assert create("none", tmp_path, project, blobs.save).workspace == str(project)


async def test_bubblewrap_is_made_by_name(box: Box, project: Path, blobs: Blobs) -> None:
    made = create("bubblewrap", box.session_dir, project, blobs.save)
    assert isinstance(made, BubblewrapSandbox)
    assert (made.name, made.workspace) == ("bubblewrap", str(project))


async def test_an_unknown_name_is_refused(project: Path, tmp_path: Path, blobs: Blobs) -> None:
    with pytest.raises(SandboxError, match="bubblewrap"):
        create("chroot", tmp_path, project, blobs.save)


async def test_what_keeps_it_from_starting_is_said(box: Box) -> None:
    missing = box.make()
    (box.session_dir / "base").rename(box.session_dir / "elsewhere")
    with pytest.raises((SandboxError, FileNotFoundError), match="base"):
        await missing.start()
    (box.session_dir / "elsewhere").rename(box.session_dir / "base")
    await missing.start()
    assert (await run(missing, "true")).exit_code == 0
