"""A store in a folder of its own, and events to put into it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.events.action import MessageAction
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store


def said(text: str) -> MessageAction:
    """A message of the user, which any process may append."""
    return MessageAction(content=text, source="user")


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
