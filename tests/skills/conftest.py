"""Skills as a notebook has them: with the bundle, and in a directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.sandbox.bundle import bundle_root
from handiwork.skills import tools


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory."""
    tools.use_bundle(str(bundle_root()))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
