from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from handiwork.log.store import Store
from tests.session.bench import Bench
from tests.session.workshop import Workshop


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Store.open(tmp_path / "data") as store, AsyncExitStack() as stack:
        yield Bench(store, workspace, stack)


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Store.open(tmp_path / "data") as store, AsyncExitStack() as stack:
        yield Workshop(tmp_path, store, stack)
