"""``handiwork approve`` and ``handiwork allow``: permissions for a session, given from outside its terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from handiwork.cli.commands.sessions import find
from handiwork.cli.dialog.questions import action_lines
from handiwork.cli.errors import say
from handiwork.cli.terminal.sanitize import exact
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.events.record import ApprovalEvent
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.user_events import (
    accepted_plan,
    actions_to_approve,
    approval,
    network_allowed,
    proposes_plan,
    running_commands,
    state_of,
)
from handiwork.settings import SettingsError

AT_WORK = (
    "these commands may still be running; they, and any programs they left running, could send data to {} at once, "
    "without asking you: stop session {}, or add --yes\n{}"
)


async def approve(session: str | None, reject: bool, always: bool, comment: str | None) -> Exit:
    """Answer all pending approvals of a session, or accept its plan; print it. Raises SettingsError, SessionMissing."""
    if reject and always:
        raise SettingsError("--always allows and --reject refuses: use only one of them")
    if comment is not None and not reject:
        raise SettingsError("--comment gives the reason for a refusal: use it with --reject")
    console = terminal_console()
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        state = await state_of(log)
        actions = actions_to_approve(state)
        if proposes_plan(state) and not reject:
            await log.append(*accepted_plan(state))
            console.print(Text("  the plan is accepted", "green"))
        elif not actions:
            raise SettingsError(f"session {log.id} has nothing to approve")
        for action in actions:
            answer = approval(action, not reject, comment or "", always)
            await log.append(answer)
            for line in action_lines(action):
                console.print(line, soft_wrap=True)
            console.print(Text(f"  {exact(_decision(answer))}", "yellow" if reject else "green"), soft_wrap=True)
    say(f"continue with `handiwork resume {log.id}`")
    return Exit.FINISHED


def _decision(answer: ApprovalEvent) -> str:
    if not answer.allowed:
        return f"not allowed: {answer.comment}" if answer.comment else "not allowed"
    return "allowed" if answer.rule is None else f"allowed, and for the rest of this session: {answer.rule}"


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
