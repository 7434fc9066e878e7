from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from handiwork.log.store import Store
from tests.session.mcp.bench import Sessions


@pytest.fixture
async def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sessions]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with Store.open(tmp_path / "data") as store, AsyncExitStack() as stack:
        yield Sessions(tmp_path, store, stack)
