from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture
def program(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path, tmp_path_factory.getbasetemp() / "cache")
