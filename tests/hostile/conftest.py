from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all workers of a run, so that one compiles for the others."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"


@pytest.fixture
def program(tmp_path: Path, cache: Path) -> Program:
    return Program(tmp_path, cache)
