"""A project in a directory of its own, and sandboxes started on it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from boxes import Blobs, Box


def _namespaces_allowed() -> bool:
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    return subprocess.run([*drop, "unshare", "-Um", "true"], check=False, capture_output=True).returncode == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not _namespaces_allowed():
        skip = pytest.mark.skip(reason="this machine does not allow unprivileged user namespaces")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@pytest.fixture
def blobs() -> Blobs:
    return Blobs()


@pytest.fixture
def session_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions/one"
    folder.mkdir(parents=True, mode=0o700)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The user's own directory: a small git repository."""
    folder = tmp_path / "me/project"
    (folder / "src").mkdir(parents=True)
    (folder / "README").write_text("read me\n")
    (folder / "src/main.py").write_text("print('hello')\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
async def box(session_dir: Path, project: Path, blobs: Blobs) -> AsyncIterator[Box]:
    async with AsyncExitStack() as stack:
        yield Box(session_dir, project, blobs, stack)
