"""Additions to the task in benchmarks that use the browser."""

from __future__ import annotations

BROWSING = frozenset({"BrowsingAgent", "VisualBrowsingAgent"})
"""Agents that see the open page themselves."""

_OPEN = (
    "The page that this is about is open in the browser, which is yours: go on from there, and do not open it anew. "
    "BrowsingAgent sees the same browser: you can give it the work, with the task in the words above."
)


def on_open_page(task: str, agent: str) -> str:
    """Return the task for the agent of that name, about the page that is open in the browser."""
    return task if agent in BROWSING else f"{task}\n\n{_OPEN}"
