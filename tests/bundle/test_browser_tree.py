"""The browser's tree needs nothing but itself and the bundle, and runs on the host too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from handiwork.errors import SandboxError
from handiwork.sandbox.bundle import BROWSER, browser_root, chromium_outside
from tests.bundle.bundle_run import Run

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.browser
def test_chromium_runs_where_there_is_nothing_else(run_inside: Run) -> None:
    browser = browser_root()
    assert browser is not None
    page = "data:text/html,<script>document.title = 6 * 7</script>"
    environment = {"LD_PRELOAD": f"{BROWSER}/lib/missing.so", "LD_LIBRARY_PATH": "/missing", "HOME": "/tmp"}
    command = [f"{BROWSER}/bin/chromium", "--headless", "--no-sandbox", "--dump-dom", page]
    done = run_inside(*command, env=environment, mounts=[(browser, BROWSER)])
    assert "<title>42</title>" in done.stdout, done.stderr
    assert "missing" not in done.stderr


@pytest.mark.slow
@pytest.mark.browser
async def test_playwright_drives_chromium_outside_of_a_sandbox(tmp_path: Path) -> None:
    script = chromium_outside(tmp_path)
    (tmp_path / "page.html").write_text("<title>a file of this machine</title>")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=script, chromium_sandbox=False)
        page = await browser.new_page()
        await page.goto(f"file://{tmp_path}/page.html")
        assert await page.title() == "a file of this machine"
        await browser.close()


def test_without_the_browser_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "handiwork_browser", None)  # Python's own mark for a module that is not there
    assert browser_root() is None
    with pytest.raises(SandboxError, match="make bundle"):
        chromium_outside(tmp_path)


def test_a_library_that_is_in_no_package_stops_the_build(tmp_path: Path) -> None:
    code = """
import sys
sys.path.insert(0, "bundle")
from pathlib import Path
from elf import Elf
Elf(Path("patchelf")).copy_libraries(Path(sys.argv[1]), ["libmissing.so.1"], Path(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert "no package in PACKAGES has libmissing.so.1" in done.stderr
