"""Runs a session to its end, with or without a user at the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from handiwork.agents.state import State
from handiwork.cli.dialog.prompt import Signals
from handiwork.cli.dialog.remote_session import RemoteSession
from handiwork.events.action import ChangeAgentStateAction
from handiwork.session.session import Session
from handiwork.session.steps.live import Observer, Status

STOPPING = "interrupting; press Ctrl-C again to stop at once"


class UserPrompt(Protocol):
    """Asks the user how to continue a session that waits or is paused."""

    def __call__(self, state: State) -> Coroutine[Any, Any, str | None]:
        """Return a message to the agent, "" to continue without one, None to leave the session."""
        ...


async def run_interactive(
    opened: Session | RemoteSession, message: str | None, signals: Signals, watch: Observer, talk: UserPrompt | None
) -> State:
    """Run the session until it ends, or until it waits and ``talk`` leaves it so; return its state.

    The first signal pauses the session, the second one cancels this call. Without ``talk`` the user is not asked.
    """
    while True:
        state = await _run(opened, message, signals, watch)
        if talk is None or signals.ending or not _stands_still(state):
            return state
        called, answer = await _unless_called(opened, talk(state))
        if answer is None and not called:
            return state
        message = answer or None


def _stands_still(state: State) -> bool:
    """Return whether the session waits for the user or is paused: by the user, by a limit, or because it is stuck."""
    return state.agent_state in ("awaiting_user_input", "awaiting_user_confirmation", "paused")


async def _unless_called(
    opened: Session | RemoteSession, talk: Coroutine[Any, Any, str | None]
) -> tuple[bool, str | None]:
    """Wait for the answer, or until another client resumes the session; return whether one did, and the answer."""
    asking, called = asyncio.create_task(talk), asyncio.create_task(opened.wait_until_resumed())
    try:
        await asyncio.wait({asking, called}, return_when=asyncio.FIRST_COMPLETED)
        return (False, asking.result()) if asking.done() else (True, None)
    finally:
        asking.cancel()
        called.cancel()
        await asyncio.gather(asking, called, return_exceptions=True)


async def _run(opened: Session | RemoteSession, message: str | None, signals: Signals, watch: Observer) -> State:
    run = asyncio.create_task(opened.run(message))
    pause: asyncio.Task[object] | None = None

    def stop() -> None:
        nonlocal pause
        if pause is None:
            watch(Status(STOPPING))
            paused = ChangeAgentStateAction(agent_state="paused", source="user")
            pause = asyncio.create_task(opened.log.append(paused))
        else:
            run.cancel()

    with signals.handled_by(stop):
        try:
            state = await run
        finally:
            run.cancel()
            if pause is not None:
                await asyncio.wait([pause])
    if pause is not None:
        pause.result()
    return state
