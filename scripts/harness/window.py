"""A browser's window on the web app, which sees to it that the page stays on its server and has no faults."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, ConsoleMessage, Page, Request, WebSocket, async_playwright

from handiwork.sandbox.bundle import chromium_outside

PATIENCE = 60
"""Seconds to wait for what must come."""


@asynccontextmanager
async def chromium(folder: Path) -> AsyncGenerator[Browser]:
    """Run Chromium; ``folder`` is for what it needs."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium_outside(folder),
            chromium_sandbox=False,
            args=["--disable-gpu"],
            timeout=PATIENCE * 1000,
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def window(browser: Browser, url: str, **options: Any) -> AsyncGenerator[Page]:
    """Open a window; that its pages had faults, or asked another host than ``url``'s, is said at the end."""
    wrong: list[str] = []
    own = urlsplit(url)
    previews = re.compile(rf"preview-[0-9a-f]+\.localhost:{own.port}")

    def asked(what: Request | WebSocket) -> None:
        parts = urlsplit(what.url)
        foreign = parts.netloc != own.netloc and not previews.fullmatch(parts.netloc)
        if parts.scheme not in ("data", "blob") and foreign:
            wrong.append(f"asked {what.url}")

    def said(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            wrong.append(message.text)

    options.setdefault("viewport", {"width": 1400, "height": 1000})
    context = await browser.new_context(base_url=url, **options)
    context.set_default_timeout(PATIENCE * 1000)
    context.on("request", asked)
    context.on("console", said)
    context.on("weberror", lambda error: wrong.append(str(error.error)))
    context.on("page", lambda page: page.on("websocket", asked))
    yield await context.new_page()
    await context.close()
    assert not wrong, wrong
