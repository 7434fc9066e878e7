"""The values that a shell completes: sessions, agents, models and settings. A shell asks for them at every Tab."""

from __future__ import annotations

SESSIONS = 30
"""The number of sessions offered, the newest first."""


def session_ids(incomplete: str) -> list[tuple[str, str]]:
    """Return the newest sessions whose id starts with ``incomplete``, each with its title."""
    import asyncio

    from handiwork.cli.terminal.sanitize import plain
    from handiwork.log.session import SessionInfo
    from handiwork.log.store import Store
    from handiwork.paths import data_dir

    async def newest() -> list[SessionInfo]:
        async with Store.open(data_dir()) as store:
            return await store.sessions(limit=SESSIONS)

    if not data_dir().is_dir():
        return []
    return [(info.id, plain(info.title)) for info in asyncio.run(newest()) if info.id.startswith(incomplete)]


def agent_names(incomplete: str) -> list[str]:
    """Return the names of the installed agents that begin so."""
    from handiwork.agents.registry import descriptions

    return [agent.name for agent in descriptions() if agent.name.startswith(incomplete)]


def model_names(incomplete: str) -> list[tuple[str, str]]:
    """Return the local models, and the beginnings of the providers' models, each with its state."""
    from handiwork.llm.availability import models

    names = ((name.removesuffix("NAME"), state) for name, _, state in models())
    return [(name, state) for name, state in names if name.startswith(incomplete)]


def setting_names(incomplete: str) -> list[str]:
    """Return the names of the settings that begin so."""
    from handiwork.settings import Settings

    return [name for name in Settings.model_fields if name.startswith(incomplete)]


def modes(incomplete: str) -> list[str]:
    """Return the modes of confirmation that begin so."""
    return [mode for mode in ("never", "risky", "always") if mode.startswith(incomplete)]


def protocols(incomplete: str) -> list[str]:
    """Return the protocols that begin so."""
    return [name for name in ("auto", "native", "json", "text") if name.startswith(incomplete)]
