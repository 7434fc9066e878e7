"""One sandbox with a browser and the test site, for all tests of a module or of the whole run."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from handiwork.events.action import CmdRunAction
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import Snapshots
from tests.browser.helpers import OTHER, SITE, Browsing
from tests.sandbox.conftest import namespaces_allowed
from tests.sandbox.helpers import Box, new_box, output


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents and "slow" in item.keywords]
    for item in here:
        item.add_marker(pytest.mark.browser)
    if not namespaces_allowed():
        for item in here:
            item.add_marker(pytest.mark.skip(reason="this machine does not allow unprivileged user namespaces"))


@pytest.fixture(scope="session")
def runtime_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nobody else's sandboxes are counted or swept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site_box(runtime_dir: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Box]:
    """A project with the site's files in it."""
    async with new_box(tmp_path_factory.mktemp("box")) as box:
        shutil.copytree(Path(__file__).parent / "site", box.project / "site")
        yield box


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_browsing(site_box: Box) -> Browsing:
    """A started sandbox, in which the site is served on SITE and OTHER."""
    places = SandboxPaths(site_box.session_dir, site_box.project, site_box.session_dir / "base")
    sandbox = site_box.make(snapshots=Snapshots(Objects(site_box.session_dir / "objects"), places.written()))
    await sandbox.start()
    await sandbox.execute(CmdRunAction(command="/opt/handiwork/bin/python3 -I site/serve.py", background=True))
    wait = f"until curl -sf {SITE}/index.html && curl -sf {OTHER}/index.html; do sleep 0.1; done >/dev/null"
    await output(sandbox, f"type curl >/dev/null; {wait}")
    return Browsing(sandbox, site_box.blobs)


@pytest_asyncio.fixture(loop_scope="session")
async def browsing(shared_browsing: Browsing) -> Browsing:
    """The shared browser with a new, blank window."""
    await shared_browsing.sandbox.browser("open")
    return shared_browsing
