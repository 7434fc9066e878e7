"""A new session in the browser: its folder, its options, and what the page remembers of the last one."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import state_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def dialog_of(page: Page) -> Locator:
    await page.get_by_role("button", name="New session").click()
    return page.get_by_role("dialog", name="New session")


async def test_a_folder_is_browsed_for_and_the_options_are_remembered(
    open_window: OpenWindow, api: Api, session: str
) -> None:
    (api.folder / "projects/greeter/.git").mkdir(parents=True, exist_ok=True)
    page = await open_window("/")
    dialog = await dialog_of(page)
    folder = dialog.get_by_label(re.compile("^Folder"))
    await folder.fill(str(api.folder))
    await dialog.get_by_role("button", name="Browse").click()
    browser = dialog.get_by_role("region", name="Folders of the server")
    await browser.get_by_role("button", name="projects").click()
    await browser.get_by_role("button", name="greeter git").click()
    await expect(browser).to_contain_text("No folders in here.")
    await browser.get_by_role("button", name="Use this folder").click()
    await expect(folder).to_have_value(str(api.folder / "projects/greeter"))

    await dialog.get_by_label(re.compile("^Task")).fill("plan it")
    await dialog.get_by_label(re.compile("^Model")).fill(api.script(bash("touch a"), finish("1. Touch it.")))
    await dialog.get_by_text("More options").click()
    await expect(dialog.locator("select[name=agent]")).to_contain_text("As the settings say: CodeActAgent")
    await dialog.locator("select[name=mode]").select_option("plan")
    await dialog.get_by_label("Steps").fill("9")
    await dialog.get_by_role("button", name="Save as a template").click()
    await dialog.get_by_label("Name of the template").fill("Plans")
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await dialog.get_by_role("button", name="Start").click()

    await expect(page.get_by_role("region", name="Plan mode")).to_contain_text("Accept the plan")
    await expect(state_of(page)).to_contain_text("waits for your answer")
    made = api.get("/api/sessions", limit=1)["sessions"][0]
    view = api.get(f"/api/sessions/{made['id']}")
    assert (view["limits"]["iterations"], view["plan_mode"]) == (9, True)
    assert view["workspace"] == str(api.folder / "projects/greeter")

    await page.get_by_role("link", name="All sessions").click()
    dialog = await dialog_of(page)
    await expect(dialog.get_by_label(re.compile("^Task"))).to_have_value("")
    await dialog.get_by_text("More options, 2 as last time").click()
    await expect(dialog.get_by_label("Steps")).to_have_value("9")
    await dialog.get_by_role("button", name="All as the settings say").click()
    await expect(dialog.get_by_label("Steps")).to_have_value("")
    await dialog.get_by_label("Template").select_option("Plans")
    await expect(dialog.get_by_label(re.compile("^Task"))).to_have_value("plan it")
    await expect(dialog.get_by_label("Steps")).to_have_value("9")


async def test_a_repository_that_cannot_be_cloned_is_told(open_window: OpenWindow, session: str) -> None:
    page = await open_window("/")
    dialog = await dialog_of(page)
    await dialog.get_by_role("button", name="Clone").click()
    cloner = dialog.get_by_role("region", name="Clone a repository")
    await cloner.get_by_label("Address of the repository").fill("http://127.0.0.3:1/nowhere.git")
    await cloner.get_by_label("Address of the repository").press("Enter")
    await expect(cloner).to_contain_text("git cannot clone http://127.0.0.3:1/nowhere.git")


async def test_a_task_that_was_not_started_is_there_when_the_dialog_opens_again(
    open_window: OpenWindow, session: str
) -> None:
    page = await open_window("/")
    task = (await dialog_of(page)).get_by_label(re.compile("^Task"))
    await task.fill("Sort the books.")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect((await dialog_of(page)).get_by_label(re.compile("^Task"))).to_have_value("Sort the books.")
