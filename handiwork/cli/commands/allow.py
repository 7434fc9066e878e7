"""``handiwork allow``: lets a session's sandbox reach more hosts, while it runs or before it resumes."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.cli.commands.sessions import find
from handiwork.cli.errors import say
from handiwork.cli.terminal.sanitize import exact
from handiwork.errors import Exit
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.user_events import network_allowed, running_commands
from handiwork.settings import SettingsError

AT_WORK = (
    "these commands may still be running; they, and any programs they left running, could send data to {} at once, "
    "without asking you: stop session {}, or add --yes\n{}"
)


async def allow(hosts: Sequence[str], session: str | None, yes: bool) -> Exit:
    """Let the sandbox of a session (None: the newest) reach the hosts. Raises like ``approve``.

    Also raises SettingsError if running commands could use the hosts unasked, unless ``yes`` is true.
    """
    try:
        event = network_allowed(hosts)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        if not yes and (running := await running_commands(log)):
            raise SettingsError(AT_WORK.format(", ".join(hosts), log.id, "".join(map(_line, running))))
        await log.append(event)
    say(f"the sandbox of session {log.id} may reach {', '.join(hosts)} from now on")
    return Exit.FINISHED


def _line(command: str) -> str:
    return f"    {exact(command)}\n"
