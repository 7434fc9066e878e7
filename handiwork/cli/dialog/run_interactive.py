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
    opened: Session | RemoteSession, message: str | None, signals: Signals, watch: Observer, prompt: UserPrompt | None
) -> State:
    """Run the session until it ends, or waits and ``prompt`` returns None; return its state.

    The first signal pauses the session, the second one cancels this call. Without ``prompt`` the user is not asked.
    """
    while True:
        state = await _run(opened, message, signals, watch)
        if prompt is None or signals.ending or not _is_waiting(state):
            return state
        resumed, answer = await _await_answer(opened, prompt(state))
        if answer is None and not resumed:
            return state
        message = answer or None


def _is_waiting(state: State) -> bool:
    """Return whether the session waits for the user or is paused: by the user, by a limit, or because it is stuck."""
    return state.agent_state in ("awaiting_user_input", "awaiting_user_confirmation", "paused")


async def _await_answer(
    opened: Session | RemoteSession, prompt: Coroutine[Any, Any, str | None]
) -> tuple[bool, str | None]:
    """Wait for the answer, or until another client resumes the session; return whether one did, and the answer."""
    reply, resumed = asyncio.create_task(prompt), asyncio.create_task(opened.wait_until_resumed())
    try:
        await asyncio.wait({reply, resumed}, return_when=asyncio.FIRST_COMPLETED)
        return (False, reply.result()) if reply.done() else (True, None)
    finally:
        reply.cancel()
        resumed.cancel()
        await asyncio.gather(reply, resumed, return_exceptions=True)


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
