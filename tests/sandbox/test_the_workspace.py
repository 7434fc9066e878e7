"""The agent works on a copy whose changes are kept apart, or in place; either way files stay the user's."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.workspace.layers import upper_dir
from tests.sandbox.helpers import Box, output, run


async def test_changes_go_to_the_upper_layer_only(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await output(sandbox, "echo more >> README; rm src/main.py; mkdir -p a/b; echo x > a/b/c; chmod +x README")
    await sandbox.close()
    upper = upper_dir(box.session_dir)
    assert (upper / "README").read_text() == "read me\nmore\n"
    assert (upper / "a/b/c").read_text() == "x\n"
    whiteout = (upper / "src/main.py").lstat()
    assert (stat.S_ISCHR(whiteout.st_mode), whiteout.st_rdev) == (True, 0)
    for folder in (box.project, box.session_dir / "base"):
        assert (folder / "README").read_text() == "read me\n"
        assert (folder / "src/main.py").exists()


async def test_changes_are_there_again_when_it_is_started_again(box: Box) -> None:
    first = box.make()
    await first.start()
    await output(first, "echo kept > kept; echo home > ~/kept; echo tmp > /tmp/kept; rm README")
    await first.close()
    second = box.make()
    await second.start()
    seen = await output(second, "cat kept ~/kept /tmp/kept; ls README 2>/dev/null || echo gone")
    assert seen.split() == ["kept", "home", "tmp", "gone"]


async def test_a_directory_that_is_not_copied_is_laid_under(box: Box) -> None:
    big = box.project / "web/node_modules"
    big.mkdir(parents=True)
    (big / "index.js").write_text("original\n")
    box.make()  # The copy is made with the directory, so take it out of it.
    (box.session_dir / "base/web/node_modules/index.js").unlink()
    (box.session_dir / "base/web/node_modules").rmdir()
    sandbox = box.make(mounts=["web/node_modules"])
    await sandbox.start()
    assert await output(sandbox, "cat web/node_modules/index.js") == "original"
    await output(sandbox, "echo changed > web/node_modules/index.js; echo new > web/node_modules/new")
    assert await output(sandbox, "cat web/node_modules/*") == "changed\nnew"
    assert (big / "index.js").read_text() == "original\n"
    assert not (upper_dir(box.session_dir) / "web").exists()


@pytest.mark.parametrize(
    "folder", ["项目文件" * 8, "Caf\udce9", "deep/" * 60 + "folder"], ids=["Chinese", "latin-1", "deep"]
)
async def test_a_directory_that_is_not_copied_may_have_any_path(box: Box, folder: str) -> None:
    big = box.project / folder / "node_modules"
    big.mkdir(parents=True)
    (big / "index.js").write_text("original\n")
    sandbox = box.make(mounts=[f"{folder}/node_modules"])
    await sandbox.start()
    assert await output(sandbox, "cat $(find . -name index.js)") == "original"


async def test_a_session_continues_without_a_directory_that_is_not_copied_and_was_removed(box: Box) -> None:
    big = box.project / "target"
    big.mkdir()
    (big / "library").write_text("built\n")
    sandbox = box.make(mounts=["target"])
    await sandbox.start()
    await output(sandbox, "echo by the agent > target/new; rm target/library")
    await sandbox.close()
    shutil.rmtree(big)  # as `cargo clean` does
    await sandbox.start()
    assert await output(sandbox, "cat target/*") == "by the agent"
    assert not big.exists()
    await sandbox.close()
    fresh = box.make(mounts=["target", "never/started"])
    await fresh.start()
    assert await output(fresh, "ls -d never/started") == "never/started"


async def test_the_projects_virtual_environment_works(box: Box) -> None:
    bin_dir = box.project / ".venv/bin"
    bin_dir.mkdir(parents=True)
    python = Path(sys.executable).resolve()
    (box.project / ".venv/pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (bin_dir / "python").symlink_to(python)
    script = bin_dir / "tool"
    script.write_text(f"#!{bin_dir}/python\nimport sys; print(sys.prefix)\n")
    script.chmod(0o755)
    sandbox = box.make()
    await sandbox.start()
    assert await output(sandbox, "tool; echo $VIRTUAL_ENV") == f"{box.project}/.venv\n{box.project}/.venv"
    assert await output(sandbox, "python -c 'import json; print(json.dumps(1))'") == "1"


async def test_paths_are_mounted_read_only_on_request(box: Box, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/table").write_text("rows\n")
    sandbox = box.make(read_only=[tmp_path / "data"])
    await sandbox.start()
    assert await output(sandbox, f"cat {tmp_path}/data/table") == "rows"
    assert "Read-only file system" in (await run(sandbox, f"echo x > {tmp_path}/data/table")).content
    with pytest.raises(SandboxError, match="does not exist"):
        await box.make(read_only=[tmp_path / "missing"]).start()


async def test_credentials_are_never_mounted(box: Box, tmp_path: Path) -> None:
    home = tmp_path / "me"
    (home / ".ssh").mkdir()
    (home / ".ssh/id_ed25519").write_text("key")
    (home / ".netrc").write_text("password")
    (home / "notes").write_text("seen")
    sandbox = box.make(read_only=[home])
    await sandbox.start()
    assert await output(sandbox, f"cat {home}/notes; ls -A {home}/.ssh; cat {home}/.netrc") == "seen"
    with pytest.raises(SandboxError, match="credentials"):
        await box.make(read_only=[home / ".ssh"]).start()
