"""The choice of a model in the browser: a provider's list with prices, and the key that is missing."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from scripts.harness.serving import Api
from tests.web.conftest import OpenWindow

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_a_model_is_chosen_from_a_list_with_prices_and_its_key_is_kept(
    open_window: OpenWindow, api: Api, session: str
) -> None:
    keys = api.folder / "config/handiwork/keys.json"
    page = await open_window("/")
    await page.get_by_role("button", name="New session").click()
    dialog = page.get_by_role("dialog", name="New session")
    await dialog.get_by_role("button", name="Choose").click()
    await dialog.get_by_role("button", name="moonshotai").click()
    offered = dialog.get_by_role("region", name="Models of moonshotai")
    await expect(offered).to_contain_text("no key: set MOONSHOTAI_API_KEY")
    await expect(offered).to_contain_text("per million tokens")
    await offered.get_by_role("searchbox", name="Search models").fill("k2.7-code")
    await offered.get_by_role("listitem").first.get_by_role("button").click()
    await expect(dialog.get_by_label(re.compile("^Model"))).to_have_value(re.compile("^moonshotai:kimi-k2.7-code$"))

    key = dialog.get_by_role("region", name="Key for moonshotai")
    await key.get_by_label("Key for moonshotai", exact=True).last.fill("a-key")
    await key.get_by_label(re.compile("^Keep it")).check()
    await key.get_by_role("button", name="Test and use").click()
    await expect(key).to_have_count(0)
    assert "a-key" in keys.read_text()
    assert keys.stat().st_mode & 0o077 == 0
