from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from handiwork.sandbox.bundle import PREFIX, bundle_root, host_command
from tests.bundle.bundle_run import Run


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="hw-bundle-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def root(open_folder: Path) -> Path:
    """The bundle's tree at a place where another user can reach it; links, so with its own permissions."""
    if os.getuid():
        return bundle_root()
    shutil.copytree(bundle_root(), open_folder / "root", copy_function=_link)
    return open_folder / "root"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # the folder is on another disk
        shutil.copy2(source, target)


@pytest.fixture(scope="session")
def as_user() -> list[str]:
    """What goes before a command so that it runs as an ordinary user."""
    return [] if os.getuid() else [*host_command("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture(scope="session")
def run_inside(root: Path, as_user: list[str]) -> Run:
    """Run a command where there is nothing but the bundle: no /usr, no /lib, no /etc."""

    def run(
        *command: str, env: dict[str, str] | None = None, mounts: Sequence[tuple[Path, str]] = ()
    ) -> subprocess.CompletedProcess[str]:
        arguments = ["--unshare-all", "--die-with-parent", "--tmpfs", "/", "--ro-bind", str(root), PREFIX]
        for source, target in mounts:
            arguments += ["--ro-bind", str(source), target]
        arguments += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        for name, value in (env or {}).items():
            arguments += ["--setenv", name, value]
        bwrap = [*as_user, *host_command("bwrap", root), *arguments, *command]
        return subprocess.run(bwrap, env={}, capture_output=True, text=True, check=False)

    return run
