"""The browser's tree runs in a sandbox: Chromium by itself, and driven by Playwright."""

from __future__ import annotations

import sys

import pytest

from handiwork.events.action import FileWriteAction
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bundle import BROWSER
from tests.sandbox.helpers import PYTHON, Box, output

DRIVE = f"""
import asyncio, sys
sys.path.insert(0, "{BROWSER}/python")
from playwright.async_api import async_playwright

PAGE = '''
<h1 style="font-family: Arial">one</h1><p>\\u6f22\\u5b57</p>
<button onclick="document.title = 6 * 7">go</button>
'''

async def main():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="{BROWSER}/bin/chromium", chromium_sandbox=False)
        page = await browser.new_page()
        await page.set_content(PAGE)
        await page.click("button")
        print(await page.title(), (await page.screenshot())[1:4].decode())
        session = await page.context.new_cdp_session(page)
        await session.send("DOM.enable")
        await session.send("CSS.enable")
        root = await session.send("DOM.getDocument")
        for name in ("h1", "p"):
            found = await session.send("DOM.querySelector", {{"nodeId": root["root"]["nodeId"], "selector": name}})
            fonts = await session.send("CSS.getPlatformFontsForNode", {{"nodeId": found["nodeId"]}})
            print([font["familyName"] for font in fonts["fonts"]])
        await browser.close()

asyncio.run(main())
"""


@pytest.fixture
async def sandbox(box: Box) -> Sandbox:
    made = box.make()
    await made.start()
    return made


@pytest.mark.slow
@pytest.mark.browser
async def test_chromium_runs(sandbox: Sandbox) -> None:
    page = "data:text/html,<script>document.title = 6 * 7</script>"
    options = "--headless --no-sandbox --dump-dom"
    dumped = await output(sandbox, f"{BROWSER}/bin/chromium {options} '{page}' 2>/dev/null")
    assert "<title>42</title>" in dumped


@pytest.mark.slow
@pytest.mark.browser
async def test_playwright_drives_it(sandbox: Sandbox) -> None:
    await sandbox.execute(FileWriteAction(path="drive.py", content=DRIVE))
    said = await output(sandbox, f"{PYTHON} drive.py")
    assert said.splitlines() == ["42 PNG", "['Liberation Sans']", "['WenQuanYi Micro Hei']"]


async def test_a_sandbox_starts_without_it(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "handiwork_browser", None)  # Python's own mark for a module that is not there
    sandbox = box.make()
    await sandbox.start()
    assert await output(sandbox, f"ls {BROWSER}") == ""
