"""The site of the documentation: no warning, no broken link, nothing that is loaded from another host."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from handiwork.cli.main import app
from handiwork.events.codec import EVENT_TYPES
from handiwork.server.app import OPERATIONS
from handiwork.settings import Settings
from scripts.harness.window import chromium, window
from scripts.site import reference
from tests.docs.blocks import CHECKOUT, PAGES

LINK = re.compile(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)")
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*?\bsrc=["']?(?P<src>[^"'\s>]+)"""
    r"""|<link\b[^>]*?\bhref=["']?(?P<href>[^"'\s>]+)|url\(["']?(?P<url>[^"')]+)|@import ["'](?P<css>[^"']+)"""
)
"""What a page or a style sheet loads by itself."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=CHECKOUT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The address of a server of the site."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_others(site: Path) -> None:
    loaded = {
        (file.relative_to(site).as_posix(), found)
        for file in site.rglob("*")
        if file.suffix in (".html", ".css")
        for match in LOADED.finditer(file.read_text())
        if re.match(r"(https?:)?//", found := next(filter(None, match.groups())))
    }
    assert loaded == set()
    assert (site / "index.html").exists()
    assert (site / "source/examples/custom_skills.py.html").exists()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 780}}])
async def test_a_reader_finds_a_setting_by_search(address: str, tmp_path: Path, look: dict[str, Any]) -> None:
    async with chromium(tmp_path) as browser, window(browser, address, **look) as page:
        await page.goto("/")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Handiwork")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if "viewport" in look:
            await page.locator("label[for=__search]").first.click()
        await page.get_by_role("textbox", name="Search").fill("requests_per_minute")
        await page.locator(".md-search-result__link", has_text="Settings").first.click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Settings")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_to_files(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation() -> None:
    text = (CHECKOUT / "mkdocs.yml").read_text()
    listed = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    assert {page.name for page in PAGES if page.parent.name == "docs"} <= listed
    assert set(reference.pages()) <= listed


def test_the_reference_has_every_command_setting_event_and_request() -> None:
    pages = {path.removeprefix("reference/"): text for path, text in reference.pages().items()}
    commands = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [name for name in commands if f"\n## handiwork {name}\n" not in pages["commands.md"]] == []
    assert "`--allow-net <list[str]>`" in pages["commands.md"]
    assert [name for name in Settings.model_fields if f"| `{name}` |" not in pages["settings.md"]] == []
    events = [name for name, kind in EVENT_TYPES.items() if kind.__module__.startswith("handiwork.events.")]
    assert [name for name in events if f"\n### {name}\n" not in pages["events.md"]] == []
    requests = [f"\n## `{one.method} {one.path}`\n" for one in OPERATIONS]
    assert [request for request in requests if request not in pages["api.md"]] == []
    assert "| `SandboxError` | 4 | 503 |" in pages["errors.md"]


def test_the_figures_of_the_readme_are_those_of_the_measurements() -> None:
    reasons = (CHECKOUT / "README.md").read_text().partition("## Why")[2].partition("\n## ")[0]
    figures = re.findall(r"\*\*([\d.,]+) (\w+)\*\*", reasons)
    assert len(figures) >= 5
    measured = (CHECKOUT / "docs/performance.md").read_text()
    assert [
        figure for figure in figures if not re.search(rf"(?<![\d.,]){re.escape(figure[0])}(?![\d,])", measured)
    ] == []


def test_the_picture_of_a_run_is_small_and_loads_nothing() -> None:
    text = (CHECKOUT / "docs/run.svg").read_text()
    head = re.match(r'<svg width="(\d+)" viewBox="0 0 (\d+) (\d+)" xmlns="http://www.w3.org/2000/svg">', text)
    assert head
    assert int(head[1]) * int(head[3]) / int(head[2]) < 400
    assert text.count("http") == 1
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert re.search(r"animation: scroll [\d.]+s", text)


def test_the_buttons_of_the_tutorial_are_those_of_the_first_run() -> None:
    steps = (CHECKOUT / "docs/tutorial.md").read_text().partition("## In the page")[2].partition("\n## ")[0]
    tested = (CHECKOUT / "tests/web/test_first_run.py").read_text()
    labels = re.findall(r"\*\*(.+?)\*\*", steps)
    assert len(labels) > 5
    assert [label for label in labels if f'"{label}"' not in tested] == []
