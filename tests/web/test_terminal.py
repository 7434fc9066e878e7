"""The user's own terminals in the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from scripts.harness.serving import Api, bash, finish, until
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import page_of
from tests.web.test_apply import PHONE, project_in
from tests.web.test_for_everybody import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def session_in(api: Api, folder: Path, *more: Any) -> str:
    """Return a finished session that keeps its sandbox."""
    session = api.create(bash("echo 'from the agent'"), finish(), *more, workspace=str(project_in(folder)))
    api.until(session, "finished")
    return session


async def opened_terminal(page: Page, number: int = 1) -> Locator:
    """Open a terminal of the user's own and wait for its prompt."""
    await page.get_by_role("button", name="New terminal").click()
    terminal = page.get_by_role("region", name=f"Terminal {number}")
    await expect(terminal).to_contain_text("project$")
    return terminal


async def test_commands_run_in_the_sandbox_and_a_new_file_is_a_change(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path)
    page = await page_of(open_window, session, "?pane=terminal")
    terminal = await opened_terminal(page)
    await page.keyboard.type("echo 'grüße 👋' | tee mine.txt")
    await page.keyboard.press("Enter")
    await expect(terminal.locator(".xterm-rows > div").get_by_text("grüße 👋", exact=True)).to_be_visible()
    await page.keyboard.type("printf '\\e[31mr''ed\\e[0m'; sleep 1234")
    await page.keyboard.press("Enter")
    await expect(terminal.locator(".xterm-fg-1", has_text="red")).to_be_visible()
    await page.keyboard.press("Control+c")
    await page.keyboard.type("echo al''ive")
    await page.keyboard.press("Enter")
    await expect(terminal).to_contain_text("alive")
    await page.get_by_role("tab", name="Changes").click()
    await expect(page.get_by_role("region", name="Changes of mine.txt")).to_contain_text("grüße 👋")
    await page.get_by_role("tab", name="Terminal").click()
    await expect(terminal).to_contain_text("alive")
    assert not any("mine.txt" in str(event) for event in api.events(session))


async def test_the_shell_takes_escape_and_the_focus_leaves_with_the_keys_that_the_pane_names(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = api.create(bash("sleep 1234"), finish(), workspace=str(project_in(tmp_path)))
    api.until(session, "running")
    until(lambda: "CmdRunAction" in api.types(session))
    page = await page_of(open_window, session, "?pane=terminal")
    terminal = await opened_terminal(page)
    await page.keyboard.type("cat -v")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await page.keyboard.type("typed")
    await page.keyboard.press("Enter")
    await expect(terminal).to_contain_text("^[")
    await expect(page.get_by_role("textbox", name="Terminal 1")).to_be_focused()
    assert api.get(session)["state"] == "running"
    await expect(page.get_by_text("leaves the terminal")).to_be_visible()
    await page.keyboard.press("Control+Shift+ArrowUp")
    await expect(page.get_by_role("radio", name="Terminal 1")).to_be_focused()
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("region", name="Terminal", exact=True)).to_contain_text("sleep 1234")
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("Paused by you")).to_be_visible()


async def test_what_is_typed_before_the_shell_is_there_reaches_it(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    page = await page_of(open_window, session_in(api, tmp_path), "?pane=terminal")
    network = await page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 2000, "downloadThroughput": -1, "uploadThroughput": -1}
    await network.send("Network.emulateNetworkConditions", slow)
    await page.get_by_role("button", name="New terminal").click()
    await expect(page.get_by_role("textbox", name="Terminal 1")).to_be_focused()
    terminal = page.get_by_role("region", name="Terminal 1")
    await page.keyboard.type("echo ear''ly\n")
    await expect(terminal).not_to_contain_text("project$", timeout=1)
    await expect(terminal).to_contain_text("early")


async def test_tab_leaves_the_agent_s_terminal(open_window: OpenWindow, api: Api, tmp_path: Path) -> None:
    session = session_in(api, tmp_path)
    page = await page_of(open_window, session, "?pane=terminal")
    await page.get_by_role("textbox", name="Terminal, read only").focus()
    await page.keyboard.press("Shift+Tab")
    await expect(page.get_by_role("button", name="New terminal")).to_be_focused()


async def test_a_sandbox_that_does_not_run_is_started_on_request_and_the_shell_ends_with_its_page(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path)
    api.post(f"{session}/stop")
    until(lambda: not api.get(session)["run_by"])
    page = await page_of(open_window, session, "?pane=terminal")
    await page.get_by_role("button", name="New terminal").click()
    await expect(page.get_by_role("alert")).to_contain_text("does not run")
    await page.get_by_role("button", name="Start the sandbox").click()
    terminal = page.get_by_role("region", name="Terminal 1")
    await expect(terminal).to_contain_text("project$")
    assert api.get(session)["state"] == "stopped"
    await page.keyboard.type("sleep 1234 & exit")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("The shell has ended.")
    await page.get_by_role("button", name="New shell").click()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.keyboard.type("sleep 2345")
    await page.keyboard.press("Enter")
    other = await page_of(open_window, session, "?pane=terminal")
    watching = await opened_terminal(other)
    await other.keyboard.type("until pgrep -f 'sleep 2345'; do read -t 0.1; done; echo he''re")
    await other.keyboard.press("Enter")
    await expect(watching).to_contain_text("here")
    await page.get_by_role("link", name="All sessions").click()
    await other.keyboard.type("while pgrep sleep; do read -t 0.1; done; echo no''ne")
    await other.keyboard.press("Enter")
    await expect(watching).to_contain_text("none")
    await other.get_by_role("button", name="Close Terminal 1").click()
    await expect(other.get_by_role("region", name="Terminal", exact=True)).to_contain_text("from the agent")


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE])
async def test_axe_finds_nothing_serious_and_a_phone_shows_it_all(
    open_window: OpenWindow, api: Api, tmp_path: Path, options: dict[str, Any]
) -> None:
    session = session_in(api, tmp_path)
    page = await open_window(f"/s/{session.rpartition('/')[2]}?pane=terminal", **options)
    terminal = await opened_terminal(page)
    await page.keyboard.type("ls --color -la; exit")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("The shell has ended.")
    await expect(terminal).to_contain_text("poem.txt")
    assert await violations(page) == []
    assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")
