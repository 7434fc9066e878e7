"""A Docker daemon that sees no file of this machine: the same sandbox, whose files are carried there and back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handiwork.sandbox import bundle, docker_bundle
from handiwork.sandbox.base import Sandbox, SandboxError
from handiwork.sandbox.docker_elsewhere import FOLDER, Record
from handiwork.sandbox.layers import upper_dir
from tests.docker.conftest import IMAGES
from tests.docker.daemon import daemon_elsewhere
from tests.docker.images import image
from tests.docker.test_any_image import (
    test_a_command_in_the_background,
    test_a_program_that_waits_for_input_gets_it,
    test_an_interrupt_leaves_the_shell_as_it_was,
    test_bash,
    test_files,
    test_nothing_of_the_system_can_be_changed_and_nothing_is_reached,
    test_the_notebook,
)
from tests.docker.test_owners_that_die_in_docker import CHECKOUT, containers, docker, volumes
from tests.sandbox.helpers import Box, output, run

__all__ = [
    "test_a_command_in_the_background",
    "test_a_program_that_waits_for_input_gets_it",
    "test_an_interrupt_leaves_the_shell_as_it_was",
    "test_bash",
    "test_files",
    "test_nothing_of_the_system_can_be_changed_and_nothing_is_reached",
    "test_the_notebook",
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("elsewhere", "nothing_is_left")]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[None]:
    with daemon_elsewhere([Path("/tmp"), bundle.bundle_root(), bundle.inside_code()]):
        yield


def left_volumes() -> set[str]:
    return volumes() - set(docker("volume", "ls", "--quiet", "--filter", f"label={docker_bundle.LABEL}"))


@pytest.fixture
async def nothing_is_left(elsewhere: None, box: Box) -> AsyncIterator[None]:
    """Nothing but the bundle's volume."""
    yield
    await box.stack.aclose()
    assert (containers(), left_volumes()) == (set(), set())


@pytest.fixture(params=["bookworm"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def sandbox(elsewhere: None, box: Box, name: str) -> Sandbox:
    box.image = image(name)
    made = box.make()
    await made.start()
    return made
