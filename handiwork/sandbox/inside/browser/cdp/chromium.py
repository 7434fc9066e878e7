"""The browser itself: Chromium's start, and its settings for the sandbox's network."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Playwright, ProxySettings, async_playwright

from .devtools import Devtools

_ARGUMENTS = ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"]
_WINDOW = (1280, 720)

START_TIMEOUT = 30.0
"""Seconds in which Chromium must start."""


class Chromium:
    """One running Chromium, with Playwright's connection and a second one to its developer tools."""

    def __init__(self, playwright: Playwright, browser: Browser, devtools: Devtools) -> None:
        self._playwright = playwright
        self._browser = browser
        self.devtools = devtools

    @classmethod
    async def start(cls, executable: Path, downloads: Path) -> Chromium:
        """Start Chromium; ``downloads`` holds downloads until they are saved. Raises PlaywrightError, OSError."""
        playwright = await async_playwright().start()
        try:
            port = _free_port()
            browser = await playwright.chromium.launch(
                executable_path=executable,
                # All this already runs in a sandbox.
                chromium_sandbox=False,
                args=[*_ARGUMENTS, f"--remote-debugging-port={port}"],
                proxy=_proxy(os.environ),
                downloads_path=downloads,
                timeout=START_TIMEOUT * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
            return cls(playwright, browser, await Devtools.connect(port))
        except BaseException:
            await playwright.stop()
            raise

    @property
    def alive(self) -> bool:
        """False once it crashed."""
        return self._browser.is_connected()

    async def new_context(
        self, *, viewport: tuple[int, int] = _WINDOW, locale: str = "en-US", **options: object
    ) -> BrowserContext:
        """Return a new context; ``viewport`` is in pixels, ``options`` are Playwright's. Raises PlaywrightError."""
        size = {"width": viewport[0], "height": viewport[1]}
        return await self._browser.new_context(viewport=size, locale=locale, accept_downloads=True, **options)  # pyright: ignore

    async def close(self) -> None:
        """End Chromium."""
        await self.devtools.close()
        await self._browser.close()
        await self._playwright.stop()


def _proxy(environment: Mapping[str, str]) -> ProxySettings | None:
    """Return the proxy of the sandbox's programs. Chromium never uses a proxy for the loopback."""
    server = environment.get("https_proxy") or environment.get("http_proxy")
    return {"server": server, "bypass": environment.get("no_proxy", "")} if server else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
