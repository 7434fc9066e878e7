"""The user searches the code in the Files pane, and a match opens the file at its lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import endless, page_of, state_of
from tests.web.test_apply import PHONE
from tests.web.test_for_everybody import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

SOURCE = "".join(f"RATE_{number} = {number}  # a rate\n" for number in range(1, 301))
FUNCTION = 'def value_added_tax(net, rate=RATE_19):\n    """Return the tax on a net price."""\n    return net * rate\n'


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE])
async def test_a_match_opens_the_file_at_its_lines(
    open_window: OpenWindow, api: Api, tmp_path: Path, options: dict[str, Any]
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/tax.py").write_text(SOURCE + FUNCTION)
    session = api.create(bash("sed -i s/net/netto/g shop/tax.py"), finish(), workspace=str(tmp_path))
    api.until(session, "finished")
    page = await open_window(f"/s/{session.rpartition('/')[2]}?pane=files", **options)
    field = page.get_by_role("searchbox", name="Search the code")
    await field.fill("name: (")
    await field.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("cannot be read at character")

    await field.fill("type: FUNCTION AND tax")
    await field.press("Enter")
    match = page.get_by_role("list", name="Blocks that match").get_by_role("button")
    await expect(match).to_contain_text("value_added_tax")
    await expect(match).to_contain_text("shop/tax.py:301")
    await expect(match).to_contain_text("def value_added_tax(netto, rate=RATE_19)")  # as the agent left it
    await expect(page.get_by_role("alert")).to_have_count(0)
    await match.press("Enter")
    file = page.get_by_role("region", name="File shop/tax.py")
    await expect(file.locator(".code-mark")).to_be_in_viewport()
    assert await violations(page) == []
    assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")
    await file.get_by_role("button", name="Edit").click()
    await expect(file.locator(".cm-activeLine")).to_contain_text("def value_added_tax")

    await field.fill("")
    await expect(page.get_by_role("tree", name="Files")).to_be_visible()


async def test_escape_empties_the_search_before_it_interrupts_the_agent(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash(endless(6)), finish())
    page = await page_of(open_window, session, "?pane=files")
    await expect(state_of(page)).to_contain_text("Running")
    field = page.get_by_role("searchbox", name="Search the code")
    await field.fill("tax")
    await field.press("Escape")
    await expect(field).to_have_value("")
    assert "ChangeAgentStateAction" not in api.types(session)
    await field.press("Escape")
    await expect(state_of(page)).to_contain_text("Paused")
