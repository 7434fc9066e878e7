"""A project in a directory of its own, and sandboxes started on it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.sandbox.helpers import Blobs, Box, new_box


def namespaces_allowed() -> bool:
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    return subprocess.run([*drop, "unshare", "-Um", "true"], check=False, capture_output=True).returncode == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not namespaces_allowed():
        skip = pytest.mark.skip(reason="this machine does not allow unprivileged user namespaces")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@pytest.fixture(autouse=True, scope="module")
def runtime_dir_of_its_own() -> Iterator[None]:
    """Nobody else's sandboxes are counted or swept; a socket's path must be short."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    async with new_box(tmp_path) as made:
        yield made


@pytest.fixture
def blobs(box: Box) -> Blobs:
    return box.blobs


@pytest.fixture
def session_dir(box: Box) -> Path:
    return box.session_dir


@pytest.fixture
def project(box: Box) -> Path:
    return box.project
