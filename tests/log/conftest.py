"""A store in a folder of its own, and a session in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def store(data: Path) -> AsyncIterator[Store]:
    async with Store.open(data) as store:
        yield store


@pytest.fixture
async def log(store: Store) -> EventLog:
    return await store.create(agent="CodeActAgent", model="scripted")
