"""A newcomer's path, timed: clone, setup, a model, a first task, and the change applied, all with the real local model.

``python -m perf.newcomer`` begins with empty caches, in a folder of its own. The page is used as a person would, by its
buttons, in Chromium. A step's time is that of the machine alone, without reading.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from playwright.async_api import expect

from scripts.harness.window import chromium

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 1800.0
"""Seconds to wait for a step."""


class Watch:
    """Prints the time of each step."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def step(self, title: str) -> None:
        """Print the seconds since the last step, and those since the beginning."""
        now = time.monotonic()
        print(f"{title:42} {now - self._last:7.1f} s   {now - self._began:7.1f} s", flush=True)
        self._last = now


def install(folder: Path, environment: dict[str, str], watch: Watch) -> Path:
    """Clone and set up; return the clone."""
    clone = folder / "handiwork"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    watch.step("git clone (from this machine)")
    subprocess.run(["make", "setup"], cwd=clone, env=environment, stdout=subprocess.DEVNULL, check=True)
    watch.step("make setup")
    return clone


async def use(link: str, folder: Path, watch: Watch) -> None:
    """Pick the local model, run the first task and apply its change."""
    expect.set_options(timeout=PATIENCE * 1000)
    async with chromium(folder) as browser:
        page = await browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        await page.goto(link)
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("progressbar", name="Download")).to_be_visible()
        watch.step("the page, and the download has begun")
        await expect(page.get_by_role("progressbar", name="Download")).to_have_count(0)
        watch.step("the model is downloaded (1.1 GB)")
        await expect(page.get_by_role("status")).to_contain_text("The model answered")
        watch.step("its first answer")
        await page.get_by_role("button", name="Repair the bug").click()
        state = page.get_by_role("region", name="State of the session")
        await expect(state.get_by_role("button", name="Apply to the folder")).to_be_visible()
        watch.step("the agent has finished its first task")
        await state.get_by_role("button", name="Apply to the folder").click()
        await page.get_by_role("button", name="Apply 1 file").click()
        await expect(page.get_by_role("dialog", name="Applied")).to_contain_text("1 file changed in")
        watch.step("its change is in the folder")


def main() -> None:
    """Run the path and print its times."""
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the sandboxes of root's sessions run as other users
        caches = ("HANDIWORK_CACHE", "HANDIWORK_DATA", "UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache")
        environment = {**os.environ, **{cache: str(folder / cache.lower()) for cache in caches}}
        clone = install(folder, environment, watch)
        command = [str(clone / ".venv/bin/handiwork"), "serve", "--port", "0"]
        own = {**environment, "XDG_CONFIG_HOME": str(folder / "config")}
        server = subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            link = server.stdout.readline().strip()
            watch.step("handiwork serve prints its link")
            asyncio.run(use(link.replace("/?", "/welcome?"), folder, watch))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
