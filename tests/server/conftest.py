from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.harness.serving import Api, Program, in_this_process


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        for name in ("HANDIWORK_MODEL", "HANDIWORK_AGENT", "HANDIWORK_SANDBOX"):
            patch.delenv(name, raising=False)
        with in_this_process(folder) as api:
            yield api


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()
