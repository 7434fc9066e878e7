"""What holds for all tests: no example is judged by how long it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("handiwork", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("handiwork")


@pytest.fixture
def new_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be a user without settings, whose sessions are in tmp_path / "data"; a socket's path must be short."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield
