"""What the host does with the bundle: find it, run its tools, add the code of the action server."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.sandbox import bundle
from handiwork.sandbox.bundle import INSIDE_PYTHON, PREFIX, browser_root, bundle_root, host_command, inside_code
from tests.bundle.bundle_run import Run


@pytest.fixture
def cache(open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = open_folder / tmp_path.name
    monkeypatch.setenv("HANDIWORK_CACHE", str(folder))
    return folder


@pytest.mark.parametrize("tree", [bundle_root, browser_root])
def test_everybody_can_read_the_tree(tree: Callable[[], Path | None]) -> None:
    root = tree()
    assert root is not None
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISDIR(mode) or stat.S_ISREG(mode), path
        assert mode & (0o005 if stat.S_ISDIR(mode) else 0o004), path
    assert all(program.stat().st_mode & 0o001 for program in (root / "bin").iterdir())


@pytest.mark.parametrize("name", ["bash", "busybox", "bwrap", "python3", "setpriv", "unshare"])
def test_host_command_runs_as_an_ordinary_user(name: str, root: Path, as_user: list[str]) -> None:
    option = "--help" if name == "busybox" else "--version"
    done = subprocess.run(
        [*as_user, *host_command(name, root), option], env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_host_command_loads_nothing_from_outside_the_tree() -> None:
    done = subprocess.run(
        [*host_command("bwrap"), "--version"], env={"LD_DEBUG": "libs"}, capture_output=True, text=True, check=True
    )
    loaded = [line.split("=")[1].strip() for line in done.stderr.splitlines() if "trying file=" in line]
    assert {Path(file).name for file in loaded} >= {"libcap.so.2", "libc.so.6"}
    assert all(file.startswith(f"{bundle_root()}/lib/") for file in loaded)


@pytest.mark.needs_root
@pytest.mark.skipif(os.getuid() != 0, reason="changes the user")
def test_root_becomes_another_user_and_that_one_gets_a_user_namespace(root: Path) -> None:
    setpriv = [*host_command("setpriv", root), "--reuid=2000000001", "--regid=2000000001", "--clear-groups"]
    unshare = [*host_command("unshare", root), "-Urm"]
    script = "read inside outside count < /proc/self/uid_map; echo $inside $outside"
    done = subprocess.run(
        [*setpriv, *unshare, *host_command("bash", root), "-c", script],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0 2000000001\n", "")


def test_unknown_program_is_an_error() -> None:
    with pytest.raises(SandboxError, match="no program 'gcc'"):
        host_command("gcc")


def test_missing_bundle_says_how_to_get_it() -> None:
    code = """
import sys
sys.modules["handiwork_bundle"] = None  # Python's own mark for a module that is not there
from handiwork.sandbox.bundle import bundle_root
bundle_root()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "SandboxError" in done.stderr
    assert "make bundle" in done.stderr
    assert "pip install handiwork-bundle" in done.stderr


def test_inside_code_is_what_the_sources_are(cache: Path) -> None:
    source = Path(bundle.__file__).parent / "inside"
    copy = inside_code() / "inside"
    assert {file.name: file.read_bytes() for file in copy.glob("*.py")} == {
        file.name: file.read_bytes() for file in source.glob("*.py")
    }


def test_inside_code_runs_compiled_in_the_sandbox(cache: Path, run_inside: Run) -> None:
    code = "import inside; print(inside.__file__, inside.__cached__)"
    done = run_inside(*INSIDE_PYTHON, "-v", "-c", code, mounts=[(inside_code(), f"{PREFIX}/app")])
    folder = f"{PREFIX}/app/inside"
    assert done.stdout == f"{folder}/__init__.py {folder}/__pycache__/__init__.cpython-311.pyc\n"
    assert "could not create" not in done.stderr


def test_inside_code_can_be_read_by_everybody_whatever_the_umask(cache: Path) -> None:
    before = os.umask(0o077)
    try:
        folder = inside_code()
    finally:
        os.umask(before)
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_inside_code_is_made_once(cache: Path) -> None:
    first = inside_code()
    made = first.stat().st_ino
    assert inside_code() == first
    assert first.stat().st_ino == made


def test_processes_that_start_together_share_one_copy(cache: Path) -> None:
    command = [sys.executable, "-c", "from handiwork.sandbox.bundle import inside_code; print(inside_code())"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    results = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert results == {f"{inside_code()}\n"}
    assert list(cache.iterdir()) == [inside_code()]


def test_copies_that_nobody_used_for_long_go_away(cache: Path) -> None:
    old, recent, abandoned = cache / "inside-old", cache / "inside-recent", cache / ".inside-killed"
    for folder in (old, recent, abandoned):
        (folder / "inside").mkdir(parents=True)
    for folder in (old, abandoned):
        os.utime(folder, (0, 0))
    assert set(cache.iterdir()) == {old, recent, abandoned}
    used = inside_code()
    assert set(cache.iterdir()) == {recent, used}


def test_each_use_makes_a_copy_young_again(cache: Path) -> None:
    folder = inside_code()
    os.utime(folder, (0, 0))
    inside_code()
    assert folder.stat().st_mtime > 0
