"""One server and one Chromium for all tests of the web app, and windows to look into."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from scripts.harness import everything
from scripts.harness.serving import Api, Program
from scripts.harness.window import PATIENCE, chromium, window
from tests.sandbox.conftest import namespaces_allowed

OpenWindow = Callable[..., Awaitable[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.browser)
    if not namespaces_allowed():
        for item in here:
            item.add_marker(pytest.mark.skip(reason="this machine does not allow unprivileged user namespaces"))


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """``handiwork serve`` for all tests that need no server of their own."""
    program = Program(tmp_path_factory.mktemp("server"))
    try:
        yield program.start()
    finally:
        program.close()


@pytest.fixture(scope="session")
def session(api: Api) -> str:
    """The id of a session that has something for every pane."""
    return everything.make(api)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    async with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def open_window(browser: Browser, api: Api) -> AsyncIterator[OpenWindow]:
    """Opens windows of users, each with a browser profile of their own, at a path of the server's."""
    async with AsyncExitStack() as stack:

        async def opened(path: str = "/", of: Api = api, **options: Any) -> Page:
            page = await stack.enter_async_context(window(browser, of.url, **options))
            await page.goto(f"{path}{'&' if '?' in path else '?'}token={of.token}")
            return page

        yield opened
