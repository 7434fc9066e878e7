"""A real server with a notebook, on the Python of the tests with the bundle's IPython."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.sandbox.bundle import bundle_root
from tests.inside.inside_client import Client, start_server, stop_server

LIBRARIES = bundle_root() / "lib/python3/dist-packages"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    client = await start_server(
        tmp_path,
        *("--soft-timeout", "0.6"),
        HANDIWORK_INSIDE_LIBRARIES=str(LIBRARIES),
        PATH="/usr/bin:/bin",
        GIVEN="by the platform",
    )
    yield client
    await stop_server(client)
