"""A browser for the pages of a small web site, in text. The pages are in web_pages.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

PAGES = Path(__file__).with_name("web_pages.jsonl")
HOME = "/"
LINES = 5
"""Lines of a page that are visible at a time."""
RULE = "-" * 10


class WebBrowser:
    """A browser that shows a page of the web site, at first its home page, a few lines at a time."""

    def __init__(self) -> None:
        pages = (json.loads(line) for line in PAGES.read_text(encoding="utf-8").splitlines() if line.strip())
        self._pages: dict[str, list[str]] = {page["name"]: page["content"].split("\n") for page in pages}
        self._page, self._top = HOME, 0
        self._history: list[str] = []

    def click_url(self, url: str) -> str:
        """Open the page of a URL, which pages show as [Clickable '<url>'], and return what it shows."""
        address = url.replace("'", "")
        if address not in self._pages:
            return "[URL not found.]"
        self._history.append(self._page)
        return self._open(address)

    def go_to_previous_page(self) -> str:
        """Go back to the page before this one, and return what it shows."""
        if not self._history:
            return "[No previous page.]"
        return self._open(self._history.pop())

    def scroll_down(self) -> str:
        """Scroll down, and return what the page shows now."""
        if self._top + LINES >= len(self._pages[self._page]):
            return "[Reached the bottom of the page.]\n"
        self._top += LINES
        return self.view()

    def scroll_up(self) -> str:
        """Scroll up, and return what the page shows now."""
        if self._top == 0:
            return "[Reached the top of the page.]\n"
        self._top -= LINES
        return self.view()

    def view(self) -> str:
        """Return what the page shows: its name, the number of the view, and the visible lines."""
        lines = self._pages[self._page]
        number, total = self._top // LINES + 1, -(-len(lines) // LINES)
        visible = "\n".join(lines[self._top : self._top + LINES])
        head = f"[Web Page Name: {self._page}]\n[Viewing page {number} of {total}]"
        return f"{RULE}\n{head}\n\n{visible}\n{RULE}"

    def _open(self, page: str) -> str:
        self._page, self._top = page, 0
        return f"[Opened page: {page}]\n{self.view()}"
