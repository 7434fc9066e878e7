"""The browser's tree runs in images without any of its libraries, or with others that are in its way."""

from __future__ import annotations

import pytest

from scripts.harness.images import image
from tests.sandbox.helpers import Box
from tests.sandbox.test_the_browser_tree import sandbox, test_chromium_runs, test_playwright_drives_it

__all__ = ["sandbox", "test_chromium_runs", "test_playwright_drives_it"]


@pytest.fixture(autouse=True, params=["musl", "bullseye", "odd"])
def in_docker(docker_daemon: None, box: Box, request: pytest.FixtureRequest) -> None:
    box.image = image(request.param)
