"""A data folder with a project beside it, on which sessions run in bubblewrap."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handiwork.log.store import Store
from tests.snapshots.workbench import Workbench


@pytest.fixture(autouse=True, scope="module")
def runtime_dir_of_its_own() -> Iterator[None]:
    """Nobody else's sandboxes are counted or swept; a socket's path must be short."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Workbench]:
    async with Store.open(tmp_path / "data") as store:
        yield Workbench(tmp_path, store)
