"""``handiwork allow``: what the user lets a session's sandbox reach besides, while it runs or before it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from handiwork.cli.exits import Exit
from handiwork.cli.guard import say
from handiwork.cli.sessions import find
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.answers import network_allowed
from handiwork.settings import SettingsError


def allow(hosts: Sequence[str], session: str | None) -> Exit:
    """Let the sandbox of a session, the newest if None is named, reach the hosts. Raises as ``approve`` does."""
    try:
        event = network_allowed(hosts)
    except ValueError as error:
        raise SettingsError(str(error)) from None

    async def append() -> str:
        async with Store.open(data_dir()) as store:
            log = await find(store, session)
            await log.append(event)
            return log.id

    say(f"the sandbox of session {asyncio.run(append())} may reach {', '.join(hosts)} from now on")
    return Exit.FINISHED
