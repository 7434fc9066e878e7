"""Packages that benchmarks use as data are what they must be, and are fetched once."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.evals.benchmark import DataError
from handiwork.evals.benchmarks.miniwob import PACKAGE, SHA256
from handiwork.evals.scoring import packages

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_package_is_fetched_once_and_only_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = packages.fetched(PACKAGE, SHA256)
    assert (tree / "miniwob/html/core/core.js").is_file()
    monkeypatch.setenv("PATH", "")  # nothing can be fetched any more
    assert packages.fetched(PACKAGE, SHA256) == tree


@pytest.mark.parametrize(
    ("requirement", "sha256"), [(PACKAGE, "0" * 64), ("miniwob==99.9", SHA256), ("miniwob==99.9", "")]
)
def test_what_is_not_it_or_not_there_leaves_nothing(cache: Path, requirement: str, sha256: str) -> None:
    with pytest.raises(DataError, match=f"^{requirement} cannot be fetched: .*miniwob"):
        packages.fetched(requirement, sha256)
    assert not [one for one in (cache / "packages").iterdir() if one.is_dir()]
