"""A Docker daemon, images made here, and the projects and sessions of the bubblewrap suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.harness.daemon import daemon
from scripts.harness.images import RECIPES
from tests.sandbox.conftest import blobs, box, project, runtime_dir_of_its_own, session_dir

__all__ = ["blobs", "box", "project", "runtime_dir_of_its_own", "session_dir"]

IMAGES = [name for name in RECIPES if name != "machine"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Those without Docker are only quick looks at what is said where there is none.
        if Path(__file__).parent in item.path.parents and "docker_daemon" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.docker)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def docker_daemon() -> Iterator[None]:
    with daemon():
        yield
