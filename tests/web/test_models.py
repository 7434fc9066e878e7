"""The choice of a model in the browser: a list with prices, and the key that is missing, refused or untested."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from scripts.harness.serving import Program, finish
from tests.llm.locked import locked_server
from tests.web.conftest import OpenWindow

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A server that no provider's key or address reaches."""
    program = Program(tmp_path)
    program.environment |= {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    for variable in [name for name in program.environment if name.endswith("_API_KEY")]:
        del program.environment[variable]
    yield program
    program.close()


async def new_session(page: Page) -> Locator:
    await page.get_by_role("link", name="All sessions").click()
    await page.get_by_role("button", name="New session").click()
    return page.get_by_role("dialog", name="New session")


async def enter(key: Locator, text: str, button: str = "Test and use") -> None:
    await key.locator("input[type=password]").fill(text)
    await key.get_by_role("button", name=button).click()


async def test_a_model_is_chosen_from_a_list_with_prices_and_its_untested_key_is_kept_on_request(
    open_window: OpenWindow, program: Program
) -> None:
    api = program.start()
    keys = api.folder / "config/handiwork/keys.json"
    page = await open_window("/welcome", of=api)
    dialog = await new_session(page)
    await dialog.get_by_role("button", name="Choose").click()
    await dialog.get_by_role("button", name="moonshotai").click()
    offered = dialog.get_by_role("region", name="Models of moonshotai")
    await expect(offered).to_contain_text("no key: set MOONSHOTAI_API_KEY")
    await expect(offered).to_contain_text("per million tokens")
    await offered.get_by_role("searchbox", name="Search models").fill("k2.7-code")
    await offered.get_by_role("listitem").first.get_by_role("button").click()
    await expect(dialog.get_by_label(re.compile("^Model"))).to_have_value(re.compile("^moonshotai:kimi-k2.7-code$"))

    key = dialog.get_by_role("region", name="Key for moonshotai")
    await key.get_by_label(re.compile("^Keep it")).check()
    await enter(key, "a-key")
    await expect(key.get_by_role("alert")).to_contain_text("could not be tested")
    assert not keys.exists()
    await key.get_by_role("button", name="Use it untested").click()
    await expect(dialog.get_by_text(f"Replace the key in {keys}")).to_be_visible()
    assert "a-key" in keys.read_text()
    assert keys.stat().st_mode & 0o077 == 0


async def test_an_empty_field_asks_for_the_key_of_the_default_model(open_window: OpenWindow, program: Program) -> None:
    program.environment["HANDIWORK_MODEL"] = "openai:gpt-5"
    page = await open_window("/welcome", of=program.start())
    dialog = await new_session(page)
    await expect(dialog.get_by_label(re.compile("^Model"))).to_have_value("")
    await expect(dialog.get_by_role("region", name="Key for openai")).to_contain_text("no key: set OPENAI_API_KEY")


async def test_the_key_of_a_server_is_asked_for_tested_and_replaced(open_window: OpenWindow, program: Program) -> None:
    with locked_server("the-key", ["first-model", "second-model"]) as base_url:
        program.environment["HANDIWORK_API_KEY"] = "an-old-key"
        page = await open_window("/welcome", of=program.start())
        dialog = await new_session(page)
        await dialog.get_by_text("More options").click()
        await dialog.get_by_label("Base URL").fill(base_url)
        await expect(dialog.get_by_text("Key of the server")).to_be_visible()
        await dialog.get_by_role("button", name="Choose").click()
        offered = dialog.get_by_role("region", name=f"Models of {base_url}")
        await expect(offered).to_contain_text("the key is refused")
        key = offered.get_by_role("region", name=f"Key for {base_url}")
        await enter(key, "wrong")
        await expect(key.get_by_role("alert")).to_contain_text("refuses the key")
        await enter(key, "the-key")
        await offered.get_by_role("button", name="second-model").click()
        await expect(dialog.get_by_label(re.compile("^Model"))).to_have_value("second-model")
        await dialog.get_by_text("Key of the server").click()
        await expect(dialog.get_by_role("region", name=f"Key for {base_url}")).to_be_visible()


async def test_a_fork_chooses_among_listed_models(open_window: OpenWindow, program: Program) -> None:
    api = program.start()
    session = api.create(finish(), task="greet")
    await asyncio.to_thread(api.until, session, "finished")
    at = next(event["id"] for event in api.events(session) if event["type"] == "AgentFinishAction")
    page = await open_window(f"/s/{session.rpartition('/')[2]}?pane=timeline", of=api)
    await page.get_by_role("slider", name="Event").fill(str(at))
    await page.get_by_role("button", name="Fork here").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Fork at event"))
    await expect(dialog.get_by_label(re.compile("^Model"))).to_have_attribute("placeholder", re.compile("^scripted:"))
    await dialog.get_by_role("button", name="Choose").click()
    await dialog.get_by_role("button", name="anthropic").click()
    offered = dialog.get_by_role("region", name="Models of anthropic")
    await offered.get_by_role("listitem").first.get_by_role("button").click()
    await expect(dialog.get_by_label(re.compile("^Model"))).to_have_value(re.compile("^anthropic:claude"))
    await expect(dialog.get_by_role("region", name="Key for anthropic")).to_be_visible()
