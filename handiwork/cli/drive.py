"""Runs a session to its end, with the user at the terminal or without."""

from __future__ import annotations

import asyncio
from typing import Protocol

from handiwork.agents.state import State
from handiwork.cli.plain import plain
from handiwork.cli.prompt import Signals, ask
from handiwork.cli.view import View
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.session.assemble import Opened
from handiwork.session.watch import Status, Watch

QUESTION = "\nwhat next? (a message to the agent, empty to go on, q to stop) "
STOPPING = "interrupting; Ctrl-C again stops at once"
ANSWER = "\nyour answer: "


class Talk(Protocol):
    """Asks the user what to do with a session that stands still."""

    async def __call__(self, state: State) -> str | None:
        """Return a message to the agent, "" to just go on, None to leave it."""
        ...


async def drive(opened: Opened, message: str | None, signals: Signals, watch: Watch, talk: Talk | None) -> State:
    """Run the session until it ends, or stands still and ``talk`` leaves it so; return its state.

    The first signal pauses it, the second one cancels this call. Without ``talk`` nobody is asked.
    """
    while True:
        state = await _run(opened, message, signals, watch)
        if talk is None or signals.ending or not _stands_still(state):
            return state
        answer = await talk(state)
        if answer is None:
            return state
        message = answer or None


def terminal_talk(view: View, signals: Signals) -> Talk:
    """Return a Talk that asks on the terminal."""

    async def talk(state: State) -> str | None:
        asked = state.agent_state == "awaiting_user_input"
        question = ANSWER if asked else QUESTION
        if asked and not view.stepped:
            question = f"\n{_last_message(state)}{ANSWER}"
        with view.still():
            while True:
                answer = await ask(question, signals)
                if answer is None or answer == "q":
                    return None
                if answer or not asked:
                    return answer

    return talk


def _stands_still(state: State) -> bool:
    """Tell whether it waits for the user: for an answer, or paused by one and not by a limit."""
    return state.agent_state == "awaiting_user_input" or (state.agent_state == "paused" and state.change is None)


async def _run(opened: Opened, message: str | None, signals: Signals, watch: Watch) -> State:
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


def _last_message(state: State) -> str:
    """Return what the agent said last, harmless to print."""
    said = (action.content for action, _ in reversed(state.history) if isinstance(action, MessageAction))
    return plain(next(said, ""))
