"""The wheel is built from nothing but packages, and what is missing is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = [sys.executable, str(REPOSITORY / "bundle/build.py")]

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="built with Debian's apt")


def run(*command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    uv_too = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": uv_too, **(env or {})}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def without_lists(folder: Path, *more: str) -> dict[str, str]:
    """The environment of a machine on which nobody ran apt-get update."""
    configuration = folder / "apt.conf"
    (folder / "lists/partial").mkdir(parents=True)
    lines = [f'Dir::State::lists "{folder}/lists";', 'Dir::State::status "/dev/null";', *more]
    configuration.write_text("\n".join(lines))
    return {"APT_CONFIG": str(configuration)}


def test_packages_that_apt_does_not_know_are_one_clear_error(tmp_path: Path) -> None:
    no_sources = ('Dir::Etc::sourcelist "/dev/null";', 'Dir::Etc::sourceparts "/dev/null";')
    done = run(*BUILD, tmp_path / "out", "bundle", env=without_lists(tmp_path, *no_sources))
    assert done.returncode == 1
    assert "Debian 12 packages, which apt-get must offer" in done.stderr
    assert "Traceback" not in done.stderr


def test_setup_names_the_missing_package_before_it_does_anything(tmp_path: Path) -> None:
    for tool in ("sh", "dirname", "id", "date", "apt-get", "dpkg-deb", "python3"):
        found = shutil.which(tool, path="/usr/bin:/bin")
        assert found
        (tmp_path / tool).symlink_to(found)
    done = run(tmp_path / "sh", REPOSITORY / "scripts/setup.sh", env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    command = done.stderr.splitlines()[-1]
    assert "apt-get install -y git" in command
    assert command.strip().startswith("sudo ") == (os.getuid() != 0)


@pytest.fixture(scope="module")
def new_machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return without_lists(tmp_path_factory.mktemp("apt"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, new_machine: dict[str, str]) -> Path:
    """Built where nobody ran apt-get update: ``make setup`` has built one with the lists of this machine."""
    done = run(*BUILD, tmp_path_factory.mktemp("wheels"), "bundle", env=new_machine)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_machine_without_package_lists_fetches_them(wheel: Path) -> None:
    assert wheel.is_file()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_wheel_is_small_and_holds_only_what_sandboxes_need(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert wheel.stat().st_size < 70 * 2**20
    assert {"handiwork_bundle/root/bin/bash", "handiwork_bundle/root/lib/libc.so.6"} <= set(names)
    assert not [name for name in names if name.endswith((".a", ".deb")) or "/idlelib/" in name]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_building_again_takes_the_same_wheel(wheel: Path, new_machine: dict[str, str]) -> None:
    made = wheel.stat().st_mtime_ns
    again = run(*BUILD, wheel.parent, "bundle", env=new_machine)
    assert again.stdout.strip() == str(wheel)
    assert wheel.stat().st_mtime_ns == made
    assert list(wheel.parent.iterdir()) == [wheel]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_installers_keep_programs_executable(wheel: Path, installer: str, tmp_path: Path) -> None:
    assert run("uv", "venv", "--seed", "--python", sys.executable, tmp_path / "venv").returncode == 0
    python = tmp_path / "venv/bin/python"
    commands = {"uv": ["uv", "pip", "install", "--python", python], "pip": [python, "-m", "pip", "install"]}
    done = run(*commands[installer], "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    (root,) = tmp_path.glob("venv/lib/python3*/site-packages/handiwork_bundle/root")
    assert all(os.access(program, os.X_OK) for program in (root / "bin").iterdir())
    assert os.access(root / "lib/ld-linux-x86-64.so.2", os.X_OK)
    assert (root / "app").is_dir()
