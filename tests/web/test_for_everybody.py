"""The pages with a screen reader, in the dark, and on a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from scripts.harness.everything import PANES
from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import conversation_of, page_of, question_of, state_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

AXE = Path(__file__).resolve().parents[2] / "web/node_modules/axe-core/axe.min.js"
RUN_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, nodes}) => id + ": " + nodes.map(({html, any}) => html + " " + any.map(({message}) => message)))
"""


async def violations(page: Page) -> list[str]:
    """Return what axe has against the page that counts as serious or critical."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    return await page.evaluate(RUN_AXE)


async def panes(page: Page) -> AsyncIterator[str]:
    """Show one pane after the other."""
    for name, content in PANES.items():
        await page.get_by_role("tab", name=name).click()
        await expect(page.get_by_role("tabpanel", name=name)).to_contain_text(content)
        yield name


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_serious(open_window: OpenWindow, api: Api, session: str, colours: Any) -> None:
    found: dict[str, list[str]] = {}
    page = await open_window("/welcome", color_scheme=colours)
    await expect(page.get_by_role("heading", name="1. Pick a model")).to_be_visible()
    found["first run"] = await violations(page)
    await page.get_by_role("link", name="All sessions").click()
    await expect(page.get_by_role("link", name="Greet politely").first).to_be_visible()
    found["sessions"] = await violations(page)
    await page.get_by_role("button", name="New session").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    found["new session"] = await violations(page)

    await page.goto(f"/s/{session}")
    await expect(conversation_of(page)).to_contain_text("Both tests pass.")
    async for pane in panes(page):
        found[pane] = await violations(page)

    asking = api.create(bash("touch a", said="Shall I?"), finish(), confirmation="always")
    await page.goto(f"/s/{asking.rpartition('/')[2]}")
    await expect(question_of(page)).to_be_visible()
    found["question"] = await violations(page)
    assert not (wrong := {where: what for where, what in found.items() if what}), wrong


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_serious_in_a_dialog(open_window: OpenWindow, api: Api, colours: Any) -> None:
    session = api.create(bash("touch a"), finish(), task="Touch a", confirmation="always")
    page = await open_window(f"/s/{session.rpartition('/')[2]}", color_scheme=colours)
    await expect(question_of(page)).to_be_visible()
    dialog = page.get_by_role("dialog")
    found: dict[str, list[str]] = {}

    async def look(name: str) -> None:
        await expect(dialog).to_be_visible()
        found[name] = await violations(page)
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)

    for name in ("Model", "Limits", "Permissions"):
        await state_of(page).get_by_role("button", name=name).click()
        await look(name)
    await page.keyboard.press("?")
    await look("keyboard shortcuts")
    await page.get_by_role("tab", name="Timeline").click()
    await page.get_by_role("button", name="Fork here").click()
    await look("fork")
    await page.goto("/")
    row = page.get_by_role("listitem").filter(has_text="Touch a").first
    for name in ("Rename", "Delete"):
        await row.get_by_role("button", name=name).click()
        await look(name)
    assert not (wrong := {where: what for where, what in found.items() if what}), wrong


async def test_a_phone_shows_it_all_without_scrolling_sideways(open_window: OpenWindow, api: Api, session: str) -> None:
    page = await open_window("/welcome", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    wide: list[str] = []

    async def look(where: str) -> None:
        if await page.evaluate("document.scrollingElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(where)

    await expect(page.get_by_role("heading", name="1. Pick a model")).to_be_visible()
    await look("first run")
    await page.get_by_role("link", name="All sessions").tap()
    await page.get_by_role("link", name="Greet politely").last.tap()
    await expect(conversation_of(page)).to_contain_text("Both tests pass.")
    await look("chat")
    async for pane in panes(page):
        await look(pane)
    assert wide == []

    asking = api.create(bash("touch a"), finish(), confirmation="always")
    page = await page_of(
        lambda path: open_window(path, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True), asking
    )
    await question_of(page).get_by_role("button", name="Allow for this session").tap()
    await expect(state_of(page)).to_contain_text("Finished")
