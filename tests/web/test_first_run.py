"""The first minutes of a new user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from handiwork.llm.scripted.script import Reply
from scripts.harness.serving import Program, bash, finish
from tests.llm.locked import locked_server
from tests.llm.standin import StandIn, serving
from tests.llm_local.tiny_weights import serving_hub
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import conversation_of, state_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

REPAIR = "sed -i 's/self.done.append/self.done.add/' todo/tasks.py && python3 -m unittest"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


async def test_a_model_is_picked_tried_and_repairs_a_bug_in_the_users_folder(
    open_window: OpenWindow, program: Program
) -> None:
    replies = [Reply.model_validate(reply) for reply in (bash(REPAIR, said="Hello there."), finish("The bug is gone."))]
    async with serving(StandIn(replies)) as model:
        api = program.start()
        page = await open_window("/", of=api)
        await expect(page.get_by_role("heading", name="Welcome to Handiwork")).to_be_visible()
        begin = page.get_by_role("button", name="Repair the bug")
        await expect(begin).to_be_disabled()
        await page.get_by_role("radio", name="At an address").check()
        await page.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
        await page.get_by_role("textbox", name="Model").fill("stand-in")
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("status")).to_contain_text("127.0.0.1:9")
        await expect(begin).to_be_disabled()

        await page.get_by_label("Base URL").fill(model.base_url)
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("status")).to_contain_text("Hello there.")
        await begin.click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("A first task")
        await expect(state_of(page)).to_contain_text("Finished")
        await expect(conversation_of(page)).to_contain_text("The bug is gone.")
        session = api.get(f"/api/sessions/{page.url.rpartition('/')[2].partition('?')[0]}")
        bug = Path(session["workspace"], "todo/tasks.py")
        assert "self.done.append" in bug.read_text()
        await state_of(page).get_by_role("button", name="Apply to the folder").click()
        await page.get_by_role("button", name="Apply 1 file").click()
        await expect(page.get_by_role("dialog", name="Applied")).to_contain_text("1 file changed in")
        assert "self.done.add" in bug.read_text()
    await page.goto("/")
    await expect(page.get_by_role("link", name="A first task")).to_be_visible()


async def test_a_server_lists_its_models_with_the_key_that_was_typed(open_window: OpenWindow, program: Program) -> None:
    with locked_server("the-key", ["first-model", "second-model"]) as base_url:
        api = program.start()
        page = await open_window("/welcome", of=api)
        await page.get_by_role("radio", name="At an address").check()
        await page.get_by_label("Base URL").fill(base_url)
        await page.locator("input[type=password]").fill("wrong")
        await page.get_by_role("button", name="List the server's models").click()
        await expect(page.get_by_role("alert")).to_contain_text("refuses the key")
        await page.locator("input[type=password]").fill("the-key")
        await page.get_by_role("button", name="List the server's models").click()
        offered = page.get_by_role("region", name=f"Models of {base_url}")
        await offered.get_by_role("button", name="second-model").click()
        await expect(page.get_by_role("textbox", name="Model")).to_have_value("second-model")
        await page.get_by_label("Keep it in a file").check()
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("status")).to_contain_text("Hello there.")
        assert "the-key" in (api.folder / "config/handiwork/keys.json").read_text()


async def test_the_download_of_a_local_model_shows_how_far_it_is(open_window: OpenWindow, program: Program) -> None:
    with serving_hub() as hub:
        hub.cuts, hub.hangs = [50_000], True
        program.environment["HF_ENDPOINT"] = hub.url
        page = await open_window("/welcome", of=program.start())
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("progressbar", name="Download")).to_have_attribute("value", "50000")
        await expect(page.get_by_role("button", name="Downloading the model …")).to_be_disabled()
        await expect(page.get_by_text("0 of 1,117 MB")).to_be_visible()
        program.end()
