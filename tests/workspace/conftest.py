from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workspace.trees import Session, Tree, write_tree


@pytest.fixture
def session(tmp_path: Path) -> Callable[[Tree], Session]:
    def start(tree: Tree) -> Session:
        source = write_tree(tmp_path / "project", tree)
        source.mkdir(exist_ok=True)
        return Session(source, tmp_path)

    return start
