"""The fixture of these tests: a real server in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.inside.inside_client import Client, start_server, stop_server


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    client = await start_server(tmp_path, "--soft-timeout", "1")
    yield client
    await stop_server(client)
